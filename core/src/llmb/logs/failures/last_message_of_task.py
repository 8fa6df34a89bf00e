"""Last message in the log of a failed task, such as one of uv, which wraps its messages."""

import re
from textwrap import shorten

LONGEST_MESSAGE = 600

_ADVICE = re.compile(r"\s*($|hint:|\[notice\])", re.IGNORECASE)
"""Lines that tools print after an error, and that contain no cause."""

_ERROR = re.compile(r"\s*(?:error: |cause: |Caused by: |╰─▶ )")
"""The beginning of a message of uv, whose further lines are indented."""

_BUILD_HINT = re.compile(r"^\s*hint: This error likely indicates.*", re.MULTILINE | re.DOTALL)
"""The paragraphs that uv prints last after a failed build."""


def last_message(log: str) -> str:
    """Return the last line that is no advice, or, if uv wrapped its last message, all lines of this message.

    Of a long message, such as that of a failed build with a traceback, return the first and the last line.
    """
    message: list[str] = []
    for line in _BUILD_HINT.sub("", log).splitlines():
        if _ADVICE.match(line):
            continue
        if _ERROR.match(line) or not line.startswith(" "):
            message = []
        message.append(line)
    last = message[-1].strip() if message else ""
    begin = _ERROR.match(message[0]) if len(message) > 1 else None
    if begin is None:
        return last[-LONGEST_MESSAGE:]
    message[0] = message[0][begin.end() :]
    text = " ".join(" ".join(message).split())
    if len(text) <= LONGEST_MESSAGE:
        return text
    half = LONGEST_MESSAGE // 2
    return f"{shorten(message[0], half, placeholder='')} ... {last[-half:]}"
