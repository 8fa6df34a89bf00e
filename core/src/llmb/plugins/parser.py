"""A plugin's log parser behind its name: a fault in it names the plugin, the log and the line."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import attrs

from llmb.logs.found import Found, ReadStep, UnreadSteps
from llmb.logs.lines import note_line
from llmb.plugins.answers import short
from llmb.values.errors import Fault, PluginError
from llmb.values.steps import LogParser, Notice, Step

ItemT = TypeVar("ItemT", bound=Step | Notice)


class GuardedParser(LogParser):
    """Whatever the parser raises is a PluginError, and so is what it finds that is no step.

    That holds for steps as well that it found, and that are read later.
    """

    def __init__(self, parser: LogParser, who: str) -> None:
        self._parser = parser
        self._who = who
        self.printed_every = getattr(parser, "printed_every", 1)
        self._ask_first_step()

    def feed(self, block: bytes, source: str = "") -> Sequence[Step | Notice]:
        """As the parser. Raises PluginError."""
        with self._naming(source):
            found = self._checked(self._parser.feed(block, source))
            self._ask_first_step()
            return found

    def close(self) -> Sequence[Step | Notice]:
        """As the parser. Raises PluginError."""
        with self._naming():
            found = self._checked(self._parser.close())
            self._ask_first_step()
            return found

    def _ask_first_step(self) -> None:
        """It may be known by now; a parser that does not inherit from `LogParser` need not have it."""
        self.first_step = getattr(self._parser, "first_step", None)

    def _naming(self, source: str = "") -> AbstractContextManager[None]:
        """A parser that raises later what befell it tells by its ``source`` where that was."""
        return _naming(self._who, getattr(self._parser, "source", "") or source)

    def _checked(self, items: Sequence[Step | Notice]) -> Found:
        found = Found()
        for piece in items.pieces if isinstance(items, Found) else items:
            if isinstance(piece, UnreadSteps):
                found.append_unread(piece.attempt, _GuardedReading(piece.read, self._who), piece.rows)
            else:
                found.append(_checked(piece))
        return found


@attrs.frozen
class _GuardedReading:
    """Makes the step of a text that the parser kept. Raises PluginError."""

    read: ReadStep
    who: str

    def __call__(self, text: bytes) -> Step:
        with _naming(self.who):
            try:
                return _checked(self.read(text))
            except Exception as error:
                note_line(error, text)
                raise


def _checked(item: ItemT) -> ItemT:
    """A step or a notice. Raises TypeError for what is none, or has a figure that is no number."""
    if isinstance(item, Step):
        known = (item.time_s, item.loss, item.tflops_per_gpu, item.tokens_per_s_per_gpu, item.mean_of)
        array("d", (figure for figure in (*known, *item.figures.values()) if figure is not None))
    elif not isinstance(item, Notice):
        raise TypeError(f"{item!r} is neither a Step nor a Notice")
    return item


@contextmanager
def _naming(who: str, source: str = "") -> Iterator[None]:
    try:
        yield
    except Exception as error:
        message = f"{who}: its log parser failed: {short(error)}"
        raise PluginError(Fault(message=message, file=source or None)) from error
