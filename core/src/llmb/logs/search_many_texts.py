"""Search blocks of bytes for many texts in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

MAX_TOGETHER = 48
"""Texts that one automaton searches for with SIMD instructions: beyond 64, ahocorasick_rs takes one byte at a time."""


class TextSearch:
    """Automata that find any of ``texts``, the longest one if several begin at the same byte.

    ``together`` is how many texts share an automaton: alone, a text is found by its rarest bytes, at memory speed.
    With many texts, few large automata are faster. Docs: docs/decisions/0007.
    """

    def __init__(self, texts: Iterable[bytes], together: int = 1) -> None:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind  # only commands that read logs pay for it

        ordered = list(dict.fromkeys(texts))
        count = -(-len(ordered) // together)
        self._groups = [ordered[number::count] for number in range(count)]
        self._automata = [BytesAhoCorasick(group, MatchKind.LeftmostLongest) for group in self._groups]

    def find_all(self, data: bytes, start: int = 0, end: int | None = None) -> list[int]:
        """Return where texts begin in ``data[start:end]``, in ascending order."""
        rest = memoryview(data)[start:end]
        found = (automaton.find_matches_as_indexes(rest) for automaton in self._automata)
        return sorted([start + begin for _, begin, _ in chain.from_iterable(found)])

    def find_named(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return where texts begin in ``data``, in ascending order, and at each place the longest first."""
        found = [
            (begin, group[index])
            for group, automaton in zip(self._groups, self._automata, strict=True)
            for index, begin, _ in automaton.find_matches_as_indexes(data)
        ]
        return sorted(found, key=lambda match: (match[0], -len(match[1])))


@lru_cache(maxsize=64)
def search_for(texts: tuple[bytes, ...], together: int = 1) -> TextSearch:
    """Return a search for some texts. It is kept for the next block, because building it takes 10 us a text."""
    return TextSearch(texts, together)
