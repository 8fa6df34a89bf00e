"""Lines at the bottom of a terminal that are rewritten in place."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.control import Control
from rich.segment import ControlType, Segment, Segments
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console


class LiveArea:
    """Lines that stay below all other output of a console.

    Only lines that changed are written, so that nothing flickers, and lines that stay the same cost nothing. A terminal
    that becomes narrower may wrap the lines, and their place is then unknown. The lines are therefore written again
    below, so that they never overwrite other output.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: list[Text] = []
        self._size = console.size
        self._lock = threading.RLock()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height that the lines may have."""
        return self._console.width, max(1, self._console.height - 1)

    def show(self, lines: Sequence[Text]) -> None:
        """Replace the lines. Cut those that are wider than the terminal, and leave out those that do not fit."""
        with self._lock:
            width, height = self.size
            shown = [line.copy() for line in lines[:height]]
            for line in shown:
                line.truncate(width, overflow="ellipsis")
            resized = self._console.size != self._size
            if width < self._size.width:
                self._lines = []
            if resized or shown != self._lines:
                self._write(self._changes(shown, everything=resized))
                self._lines, self._size = shown, self._console.size

    def print_above(self, text: Text) -> None:
        """Print lines above the area. The terminal scrolls them away, as other output."""
        with self._lock:
            shown, self._lines = self._lines[: self.size[1]], []
            above = [*_up(len(shown)), *_erased(len(shown)), *self._rendered(text), Segment.line()]
            self._write([*above, *self._changes(shown, everything=True)])
            self._lines = shown

    def _changes(self, lines: Sequence[Text], *, everything: bool) -> list[Segment]:
        """Return what turns the shown lines into these. The cursor is below the last line, before and after."""
        old = self._lines
        reachable = min(len(old), self.size[1])  # a lower terminal has scrolled the first lines away
        segments = _up(reachable)
        for at, line in enumerate(lines):
            if everything or at >= len(old) or line != old[at]:
                segments += [_ERASE_LINE, *self._rendered(line)]
            segments.append(Segment.line())
        return segments + _erased(max(0, reachable - len(lines)))

    def _rendered(self, text: Text) -> list[Segment]:
        return list(self._console.render(text, self._console.options.update(no_wrap=True, overflow="ignore")))[:-1]

    def _write(self, segments: Sequence[Segment]) -> None:
        self._console.print(Segments(segments), end="", soft_wrap=True)


class LinesAbove(io.TextIOBase):
    """A text stream whose lines are printed above an area."""

    def __init__(self, area: LiveArea) -> None:
        self._area = area
        self._begun = ""

    def write(self, text: str) -> int:
        """Print the complete lines, and keep the last one until it ends."""
        *lines, self._begun = f"{self._begun}{text}".split("\n")
        for line in lines:
            self._area.print_above(Text(line))
        return len(text)


def _up(count: int) -> list[Segment]:
    """Return the move to the beginning of the line that is so many lines higher."""
    return [Control((ControlType.CURSOR_UP, count), ControlType.CARRIAGE_RETURN).segment] if count else []


def _erased(count: int) -> list[Segment]:
    """Return what erases so many lines. The cursor ends where it began."""
    return [_ERASE_LINE, Segment.line()] * count + _up(count)


_ERASE_LINE = Control((ControlType.ERASE_IN_LINE, 2)).segment
