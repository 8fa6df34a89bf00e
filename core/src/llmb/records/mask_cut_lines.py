"""Secrets in lines that a launcher cut. Each part has the label of its rank, and contains no complete value.

Lines of other ranks may come between the parts.
"""

import re
from collections.abc import Iterable, Iterator

LINE_BYTES = 1024
"""The bytes of a part without its label. Launchers that print one label per message cut longer lines, such as that of
`print(os.environ)`.
"""

MOST_RESTS = 16
"""Rests per rank that are expected after another line of the rank, such as one of its standard error."""

SHORTEST_REST = 6
"""The least bytes of such a rest. Shorter ones begin any line."""

_LABEL = rb" *\d{1,6}: "
_CUT = re.compile(rb"\n%s[^\n]{%d}(?!.)" % (_LABEL, LINE_BYTES))
_LINE = re.compile(rb"(\n%s)([^\n]+)" % _LABEL)
_UNFINISHED = re.compile(
    rb"(?:\A|\n)( *\d{0,6}:?|%s[^\n]{0,%d}|%s[^\n]{%d}\n)\Z" % (_LABEL, LINE_BYTES, _LABEL, LINE_BYTES)
)


class CutLines:
    """Mask for the parts of ``secrets`` at the end of a cut line and at the beginning of the rank's next one.

    It keeps which rests it expects from one call to the next, so each log needs a mask of its own.
    """

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._secrets: dict[int, list[bytes]] = {}  # by their first byte
        self._longest = 0
        for secret in secrets:
            self._secrets.setdefault(secret[0], []).append(secret)
            self._longest = max(self._longest, len(secret))
        self._rests: dict[bytes, list[bytes]] = {}  # what may begin the next line, by the label of a cut line

    def mask(self, data: bytes) -> bytes:
        """Return complete lines with the parts masked. A later call masks the rest of a line that is the last here."""
        lines = b"\n" + data
        if self._secrets and (self._rests or _CUT.search(lines)):
            lines = _LINE.sub(self._mask_line, lines)
        return lines[1:]

    def _mask_line(self, line: re.Match[bytes]) -> bytes:
        label, text = line.groups()
        rests = self._rests.pop(label, [])
        begin = max((len(rest) for rest in rests if text.startswith(rest)), default=0)
        expected = [each for each in rests if len(each) >= SHORTEST_REST and not text.startswith(each)][-MOST_RESTS:]
        if len(text) == LINE_BYTES:
            longer = [rest[LINE_BYTES:] for rest in rests if len(rest) > LINE_BYTES and rest.startswith(text)]
            parts = [*self._parts_at_end(text)]
            expected = longer or [*expected, *(rest for _, rest in parts)]
            end = 0 if longer else min((at for at, _ in parts), default=LINE_BYTES)
            text = text[:end] + b"*" * (LINE_BYTES - end)
        if expected:
            self._rests[label] = expected
        return label + b"*" * begin + text[begin:]

    def _parts_at_end(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield each offset from which on a text may be the beginning of a secret, and the rest of this secret."""
        for at in range(max(0, len(text) - self._longest + 1), len(text)):
            part = text[at:]
            yield from ((at, each[len(part) :]) for each in self._secrets.get(text[at], ()) if each.startswith(part))


def begin_of_unfinished_line(data: bytes) -> int:
    """Return the offset of a last line with a label that is not complete yet, or that is cut, or the end of data."""
    begin = max(0, len(data) - 2 * LINE_BYTES)
    found = _UNFINISHED.search(data, max(begin, data.rfind(b"\n", begin, len(data) - 1)))
    return found.start(1) if found else len(data)
