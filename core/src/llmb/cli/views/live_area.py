"""Lines at the bottom of a terminal that are rewritten in place."""

from __future__ import annotations

import io
import math
import os
import threading
from collections.abc import Sequence

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType, Segment, Segments
from rich.text import Text

WRAPPING_VARIABLES = ("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "WT_SESSION", "ALACRITTY_WINDOW_ID")
"""Variables of terminals that wrap the lines on their screen again when their width changes."""

WRAPPING_PROGRAMS = ("tmux", "iTerm.app", "WezTerm", "ghostty", "vscode")
"""Values of TERM_PROGRAM with the same meaning."""


class LiveArea:
    """Lines that stay below all other output of a console.

    Only lines that changed are written, so that nothing flickers, and lines that stay the same cost nothing. Many
    terminals wrap the lines when they become narrower. In those that are known to do so, the wrapped lines are erased.
    In others, the place of the lines is unknown. They are therefore written again below, so that they never overwrite
    other output.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        is_known = os.environ.get("TERM_PROGRAM") in WRAPPING_PROGRAMS
        self._wraps = is_known or any(map(os.environ.get, WRAPPING_VARIABLES))
        self._lines: list[Text] = []
        self._size = console.size
        self._position_lost = False
        self._lock = threading.RLock()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height that the lines may have."""
        return self._console.width, max(1, self._console.height - 1)

    def forget_position(self) -> None:
        """Write the lines below all other output next time, because another program has used the terminal."""
        self._position_lost = True  # no lock: a signal handler calls this, perhaps while this thread writes

    def show(self, lines: Sequence[Text]) -> None:
        """Replace the lines. Cut those that are wider than the terminal, and leave out those that do not fit."""
        with self._lock:
            self._forget_lost_lines()
            width, height = self.size
            shown = [line.copy() for line in lines[:height]]
            for line in shown:
                line.truncate(width, overflow="ellipsis")
            resized = self._console.size != self._size
            if width < self._size.width:
                self._erase_wrapped(width, height)
            if resized or shown != self._lines:
                self._write(self._changes(shown, everything=resized))
                self._lines, self._size = shown, self._console.size

    def _forget_lost_lines(self) -> None:
        if self._position_lost:
            self._position_lost, self._lines = False, []

    def _erase_wrapped(self, width: int, height: int) -> None:
        """Forget the lines, which the terminal may have wrapped to this width. Erase them if it surely has."""
        if self._wraps:
            rows = sum(max(1, math.ceil(line.cell_len / width)) for line in self._lines)
            on_screen = min(rows, height)
            self._write([*_up(on_screen), *_erased(on_screen)])
        self._lines = []

    def print_above(self, text: Text) -> None:
        """Print lines above the area. The terminal scrolls them away, as other output."""
        with self._lock:
            self._forget_lost_lines()
            shown, self._lines = self._lines[: self.size[1]], []
            above = [_WRAP, *self._rendered(text), Segment.line(), _CUT]
            self._write([*_up(len(shown)), *_erased(len(shown)), *above, *self._changes(shown, everything=True)])
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
        """Write with lines cut at the edge. A terminal may be narrower already, and report that a moment later."""
        self._console.print(Segments([_CUT, *segments, _WRAP]), end="", soft_wrap=True)


class LinesAbove(io.TextIOBase):
    """A text stream whose lines are printed above an area."""

    def __init__(self, area: LiveArea) -> None:
        self._area = area
        self._begun = ""

    def isatty(self) -> bool:
        """Return True, because the area is on a terminal."""
        return True

    def write(self, text: str) -> int:
        """Print the complete lines, and keep the last one until it ends.

        Raise TypeError for bytes, as every text stream does, because click writes bytes to a stream that accepts them.
        """
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._area.print_above(Text(line))
        return len(text)


def _up(count: int) -> list[Segment]:
    """Return the move to the beginning of the line that is so many lines higher."""
    return [Control((ControlType.CURSOR_UP, count), ControlType.CARRIAGE_RETURN).segment] if count else []


def _erased(count: int) -> list[Segment]:
    """Return what erases so many lines, and the ^C of an interruption below them. The cursor ends where it began."""
    return [*[_ERASE_LINE, Segment.line()] * count, _ERASE_LINE, *_up(count)] if count else []


_CUT, _WRAP = Segment("\x1b[?7l", None, []), Segment("\x1b[?7h", None, [])
"""Whether the terminal cuts or wraps lines that are too long (DECAWM)."""

_ERASE_LINE = Control((ControlType.ERASE_IN_LINE, 2)).segment
