"""Secrets in lines that a launcher cut. Each part has the label of its rank, and contains no complete value.

Lines of other ranks may come between the parts.
"""

import re
from collections.abc import Collection

LINE_BYTES = 1024
"""The bytes of a part without its label. Launchers that print one label per message cut longer lines, such as that of
`print(os.environ)`.
"""

MAX_RESTS = 16
"""Rests per rank that are expected after another line of the rank, such as one of its standard error."""

SHORTEST = 6
"""The least bytes of a secret, and of such a rest. Shorter text occurs in any log."""

_LABEL = rb" *\d{1,6}: "
_CUT = re.compile(rb"\n%s[^\n]{%d}(?!.)" % (_LABEL, LINE_BYTES))
_LINE = re.compile(rb"(\n%s)([^\n]+)" % _LABEL)
_UNFINISHED = re.compile(rb" *\d{0,6}:?|%s[^\n]{0,%d}|%s[^\n]{%d}\n" % (_LABEL, LINE_BYTES, _LABEL, LINE_BYTES))
"""A part of a label, a labelled line that is not complete, or a cut line."""


class CutLines:
    """Mask for the parts of ``secrets`` at the end of a cut line and at the beginning of the rank's next one.

    It keeps which rests it expects from one call to the next, so each log needs a mask of its own.
    """

    def __init__(self, secrets: Collection[bytes]) -> None:
        self._longest = max(map(len, secrets), default=0)
        self._secrets: dict[int, list[bytes]] = {}  # by their first byte
        for secret in secrets:
            self._secrets.setdefault(secret[0], []).append(secret)
        self._rests: dict[bytes, list[bytes]] = {}  # what may begin the next line, by the label of a cut line

    def mask(self, data: bytes) -> bytes:
        """Return complete lines with the parts masked. A later call masks the rest of a line that is the last here."""
        lines = b"\n" + data
        if self._secrets and (self._rests or _CUT.search(lines)):
            lines = _LINE.sub(self._mask_line, lines)
        return lines[1:]

    def _mask_line(self, line: re.Match[bytes]) -> bytes:
        """Return a line with its label, masked, and keep the rests that are expected in the next line of its rank."""
        label, text = line.groups()
        rests = self._rests.pop(label, [])
        is_cut = len(text) == LINE_BYTES
        if is_cut and (longer := [rest for rest in rests if rest.startswith(text) and rest != text]):
            self._rests[label] = [rest[LINE_BYTES:] for rest in longer]
            return label + b"*" * LINE_BYTES
        masked = bytearray(text)
        for rest in rests:
            if text.startswith(rest):
                masked[: len(rest)] = b"*" * len(rest)
        expected = [rest for rest in rests if len(rest) >= SHORTEST and not text.startswith(rest)][-MAX_RESTS:]
        if is_cut:
            for size in range(min(self._longest - 1, LINE_BYTES), 0, -1):
                part = text[-size:]
                for secret in self._secrets.get(part[0], ()):
                    if secret.startswith(part):
                        masked[-size:] = b"*" * size
                        expected.append(secret[size:])
        if expected:
            self._rests[label] = expected
        return label + masked


def begin_of_unfinished_line(data: bytes) -> int:
    """Return the offset of a last line with a label that is not complete yet, or that is cut, or the end of data."""
    begin = data.rfind(b"\n", 0, len(data) - 1) + 1
    is_short = len(data) - begin <= 2 * LINE_BYTES  # whatever the width of the label
    return begin if is_short and _UNFINISHED.fullmatch(data, begin) else len(data)
