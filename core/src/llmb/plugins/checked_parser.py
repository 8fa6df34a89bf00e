"""Log parsers of plugins behind their guard. Errors name the plugin, the log and the line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

from llmb.logs.steps.line_parser import LineParser, note_line
from llmb.logs.time_limit import TooSlowError, time_limit
from llmb.plugins import slow_hooks
from llmb.values.steps import MAX_STEPS, LogParser, Notice, Step

if TYPE_CHECKING:
    from llmb.plugins.guard import Guard

T = TypeVar("T")

CODE = "the log parser of parse_log()"
"""The name of this code in errors."""

MAX_SHOWN = 300
"""Characters of an invalid step that are shown."""


class CheckedParser(LogParser):
    """A log parser of a plugin behind its guard, which also checks the steps and notices that the parser returns."""

    def __init__(self, parser: LogParser, guard: Guard) -> None:
        self._parser = parser
        self._guard = guard
        with self._running():
            self.printed_every = _integer("printed_every", getattr(parser, "printed_every", 1), least=1)
            ends = getattr(parser, "end_texts", ())
            self.end_texts = _texts("end_texts", ends, str, "a tuple of str, such as ('done',)")
            if isinstance(parser, LineParser):
                _check_line_parser(parser)
            self._read_first_step()

    def feed(self, block: bytes, source: str = "") -> Sequence[Step | Notice]:
        """Feed the parser. Raise PluginError if the parser fails or returns a wrong type."""
        with self._running(source):
            found = self._in_time(lambda: self._parser.feed(block, source), block)
            if type(self._parser).feed is not LineParser.feed:  # which checks its steps itself
                found = _checked(found)
            self._read_first_step()
            return found

    def close(self) -> Sequence[Step | Notice]:
        """Close the parser. Raise PluginError if the parser fails or returns a wrong type."""
        with self._running():
            found = _checked(self._in_time(self._parser.close))
            self._read_first_step()
            return found

    def _in_time(self, act: Callable[[], T], block: bytes = b"") -> T:
        """Call the parser. Raise TooSlowError, with the line or the block, if it takes longer than its limit."""
        try:
            limit_s = slow_hooks.PARSER_LIMIT_S
            with time_limit(limit_s, f"more than {limit_s:g} s for one block of the log"):
                return act()
        except TooSlowError as error:
            if not getattr(error, "__notes__", None):
                note_line(error, block)
            raise

    def _read_first_step(self) -> None:
        """Copy ``first_step``, which may be known by now and which a parser without a base class need not have."""
        first = getattr(self._parser, "first_step", None)
        self.first_step = None if first is None else _integer("first_step", first)

    def _running(self, source: str = "") -> AbstractContextManager[None]:
        """Guard the parser's code. A parser that raises an error later than it occurred names the log by ``source``."""
        own = getattr(self._parser, "source", "") if isinstance(self._parser, LineParser) else ""
        return self._guard.running(CODE, file=own or source or None)


def _check_line_parser(parser: LineParser) -> None:
    """Raise an exception if the parser cannot read lines."""
    if not hasattr(parser, "source"):
        raise TypeError("__init__() does not call super().__init__()")
    expected = "a tuple of bytes, such as (b'step',)"
    needles = _texts("needles", parser.needles, bytes, expected)
    if not needles and type(parser).read_line is not LineParser.read_line:
        raise ValueError(f"no needles, so no line would be read; expected {expected}")


def _checked(items: Iterable[Step | Notice]) -> list[Step | Notice]:
    """Return the steps and notices. Raise an exception that shows the first one with a wrong type."""
    found = list(items)
    for item in found:
        if isinstance(item, Step):
            try:
                item.check()
            except Exception as error:
                error.add_note(f"in {item!r}"[:MAX_SHOWN])
                raise
        elif not isinstance(item, Notice):
            raise TypeError(f"{item!r} is neither a Step nor a Notice")
    return found


def _texts(name: str, value: Any, kind: type[str] | type[bytes], expected: str) -> tuple[Any, ...]:
    """Return the value. Raise ValueError if it is not a sequence of texts: a text is a sequence of its letters."""
    if isinstance(value, tuple | list) and all(isinstance(each, kind) and each for each in value):
        return tuple(value)
    raise ValueError(f"invalid {name} {value!r}; expected {expected}")


def _integer(name: str, value: Any, least: int = 0) -> int:
    """Return the value. Raise ValueError if it is not a number of steps."""
    try:
        number = index(value)
    except TypeError:
        number = -1
    if not least <= number < MAX_STEPS:
        raise ValueError(f"invalid {name} {value!r}; expected an integer of at least {least}")
    return number
