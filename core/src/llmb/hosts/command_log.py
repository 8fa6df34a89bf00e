"""A log of the commands that llmb runs on hosts, for ``llmb --verbose``."""

import logging
from collections.abc import Sequence

SHOWN_LINES = 8
"""Lines at the end of a script that are logged. The lines before define functions."""

_LOGGER = logging.getLogger("llmb.hosts")


def log_command(host: str, script: str) -> None:
    """Log the end of a script that is about to run on a host."""
    if not _LOGGER.isEnabledFor(logging.DEBUG):
        return
    lines = script.strip().splitlines()
    left_out = _after_functions(lines, len(lines) - SHOWN_LINES) if len(lines) > SHOWN_LINES else 0
    more = f" (after {left_out} lines of functions)" if left_out else ""
    _LOGGER.debug("%s runs%s:\n%s", host, more, "\n".join(f"  {line}" for line in lines[left_out:]))


def _after_functions(lines: Sequence[str], first: int) -> int:
    """Return the number of the first line, from line ``first`` on, behind which no function ends."""
    start, is_function = first, True
    for number, line in enumerate(lines[first:-1], first):
        if line.endswith("{"):
            is_function = "()" in line
        elif line.startswith("}") and is_function:
            start = number + 1
    while not lines[start].strip():
        start += 1
    return start
