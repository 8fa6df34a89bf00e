"""A plugin's log parser behind its name: a fault in it names the plugin, the log and the line."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import AbstractContextManager
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from llmb.logs.found import Found, ReadStep, UnreadSteps
from llmb.logs.lines import note_line
from llmb.values.steps import MOST_STEPS, LogParser, Notice, Step

if TYPE_CHECKING:
    from llmb.plugins.guard import Guard

CODE = "the log parser of parse_log()"
"""The name of this code in errors."""

MOST_SHOWN = 300
"""Characters of a wrong step or notice that are told."""

ItemT = TypeVar("ItemT", bound=Step | Notice)


class CheckedParser(LogParser):
    """Whatever the parser raises is a PluginError, and so is what it finds or says that is not of the stated type.

    That holds for steps as well that it found, and that are read later. Raises PluginError itself where the parser's
    ``first_step`` or ``printed_every`` is wrong.
    """

    def __init__(self, parser: LogParser, guard: Guard) -> None:
        self._parser = parser
        self._guard = guard
        with self._naming():
            self.printed_every = _whole("printed_every", getattr(parser, "printed_every", 1), least=1)
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
        first = getattr(self._parser, "first_step", None)
        self.first_step = None if first is None else _whole("first_step", first)

    def _naming(self, source: str = "") -> AbstractContextManager[None]:
        """A parser that raises later what befell it tells by its ``source`` where that was."""
        own = getattr(self._parser, "source", "")
        return self._guard.running(CODE, file=(own if own and isinstance(own, str) else source) or None)

    def _checked(self, items: Sequence[Step | Notice]) -> Found:
        found = Found()
        for piece in items.pieces if isinstance(items, Found) else items:
            if isinstance(piece, UnreadSteps):
                _check_unread(piece.rows)
                found.append_unread(piece.attempt, _GuardedReading(piece.read, self._guard), piece.rows)
            else:
                found.append(_checked(piece))
        return found


@attrs.frozen
class _GuardedReading:
    """Makes the step of a text that the parser kept. Raises PluginError."""

    read: ReadStep
    guard: Guard

    def __call__(self, text: bytes) -> Step:
        with self.guard.running(CODE):
            try:
                return _checked(self.read(text))
            except Exception as error:
                note_line(error, text)
                raise


def _checked(item: ItemT) -> ItemT:
    """A step or a notice. Raises an exception for what is none, or of which a part is not of the stated type."""
    if not isinstance(item, Step | Notice):
        raise TypeError(f"{item!r} is neither a Step nor a Notice")
    try:
        if isinstance(item, Step):
            _check_step(item)
        else:
            _check_notice(item)
    except Exception as error:
        error.add_note(f"in {repr(item)[:MOST_SHOWN]}")
        raise
    return item


def _check_step(step: Step) -> None:
    """Whether it fits the columns of a `StepTable`; an array tells it fast, and a log may have a step on each line."""
    known = (step.time_s, step.loss, step.tflops_per_gpu, step.tokens_per_s_per_gpu)
    array("d", [figure for figure in known if figure is not None])
    array("d", step.figures.values())
    "".join(step.figures).encode()
    array("Q", (step.attempt, 0 if step.mean_of is None else step.mean_of))


def _check_notice(notice: Notice) -> None:
    if not isinstance(notice.text, str):
        raise TypeError("its text is no str")
    notice.text.encode()
    if notice.value is not None or notice.kind == "total steps":
        _whole("value", notice.value)
    if notice.attempt is not None:
        _whole("attempt", notice.attempt)


def _check_unread(rows: Sequence[tuple[int, bytes]]) -> None:
    """Whether each is the number of a step and a text."""
    highest = max(array("Q", [number for number, _ in rows]), default=0)
    if highest >= MOST_STEPS:
        raise ValueError(f"{highest} is not the number of a step")
    b"".join([text for _, text in rows])


def _whole(name: str, value: Any, least: int = 0) -> int:
    """The value. Raises ValueError where it is no number of steps."""
    try:
        number = index(value)
    except TypeError:
        number = -1
    if not least <= number < MOST_STEPS:
        raise ValueError(f"{name} is {value!r}, where a whole number from {least} on is due")
    return number
