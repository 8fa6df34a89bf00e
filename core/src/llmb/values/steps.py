"""Steps and notices that a parser finds in a training log."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import sub
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import attrs

from llmb.values.causes import Cause
from llmb.values.frozen import FrozenMap

MAX_STEPS = 1 << 63
"""Limit of step numbers, so that they fit into eight bytes."""

COLUMNS = ("step", "time_s", "loss", "tflops_per_gpu", "tokens_per_s_per_gpu", "mean_of", "attempt")
"""Columns of a table of steps. Another printed value of such a name is left out of the table."""


@attrs.define(kw_only=True)
class Step:
    """One training step, with the framework's own number.

    ``time_s`` is None if the log does not print it. ``mean_of`` is the number of steps over which the framework
    averaged it; None means all steps since the one printed before. A step given again for the same attempt replaces the
    earlier one. ``other_values`` are the other printed values. ``rank`` is the rank that printed the step, if the log
    contains it. `LineParser` sets it from the label before the line. A parser sets it if the lines of its framework
    name the rank in another form. ``rank_times`` are the times of this step by rank, if the framework prints those of
    all ranks in one log.

    A log may have a step on each line, so a step is the only value that is neither frozen nor checked when it is
    created.
    """

    step: int
    time_s: float | None = None
    loss: float | None = None
    tflops_per_gpu: float | None = None
    tokens_per_s_per_gpu: float | None = None
    other_values: Mapping[str, float] = attrs.field(factory=dict)
    mean_of: int | None = 1
    attempt: int = 0
    rank: int | None = attrs.field(default=None, eq=False, repr=False)
    rank_times: Mapping[int, float] = attrs.field(default=FrozenMap(), eq=False, repr=False)

    def check(self) -> None:
        """Raise an exception if a value has the wrong type or is out of range. Steps of floats alone are fastest."""
        for known in (self.time_s, self.loss, self.tflops_per_gpu, self.tokens_per_s_per_gpu):
            if known is not None and type(known) is not float:
                _check_value(known)
        for name, value in self.other_values.items():
            if type(value) is not float:
                _check_value(value)
            if type(name) is not str or not name.isascii():
                _check_name(name)
        for count in (self.step, self.attempt, self.mean_of or 0, self.rank or 0):
            if not (isinstance(count, int) and 0 <= count < MAX_STEPS):
                raise ValueError(f"invalid number {count!r} of a step; expected an integer of at least 0")
        if self.rank_times is not _NO_TIMES:
            _check_rank_times(self.rank_times)


_NO_TIMES = attrs.fields(Step).rank_times.default
"""The map that all steps without times of ranks share."""


def _check_value(value: object) -> None:
    """Raise TypeError if a value is not a number, OverflowError if it is too large for a float."""
    if not isinstance(value, int | float):
        raise TypeError(f"invalid value {value!r} of a step; expected a float")
    float(value)


def _check_name(name: object) -> None:
    """Raise an exception if the name of a printed value is not a text that can be written."""
    if not isinstance(name, str):
        raise TypeError(f"invalid name {name!r} of a value; expected a str")
    name.encode()


def _check_rank_times(times_s: Mapping[int, float]) -> None:
    """Raise an exception if a rank is not an integer or its time is not a number."""
    for rank, time_s in times_s.items():
        if not isinstance(rank, int) or not isinstance(time_s, int | float):
            raise TypeError(f"invalid time {time_s!r} of rank {rank!r}; expected a float")


@attrs.frozen
class RankTimes:
    """Step times in seconds that one process printed, by the numbers of the steps."""

    rank: int | None
    host: str | None
    times_s: Mapping[int, float]


def find_log_interval(numbers: Sequence[int]) -> int:
    """Return the most common distance between printed steps, or 1 if none occurs twice. A log may print every tenth."""
    gaps = Counter(map(sub, numbers[1:], numbers))
    gap, seen = gaps.most_common(1)[0] if gaps else (1, 0)
    return gap if seen > 1 else 1


NoticeKind = Literal["total steps", "planned end", "finished", "nan", "checkpoint", "run unknown", Cause]


def _is_text(_notice: object, _field: object, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"invalid text {value!r}; expected a str")
    value.encode()


def _is_count(_notice: object, field: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and not (isinstance(value, int) and 0 <= value < MAX_STEPS):
        raise ValueError(f"invalid {field.name} {value!r}; expected an integer of at least 0")


def _is_time(_notice: object, field: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and not (isinstance(value, int | float) and 0 <= value < math.inf):
        raise ValueError(f"invalid {field.name} {value!r}; expected a number of at least 0")


@attrs.frozen(kw_only=True)
class Notice:
    """Another message in a log.

    ``kind`` is "total steps" (with ``value``), "planned end", "finished", "nan", "checkpoint", or why the job ends.
    After a "planned end", such as at a target loss, the run is complete with the steps that it has. A "checkpoint" was
    written between two steps and took ``time_s``. One that is part of a step time needs no notice. "run unknown" means
    that ``text``, the names of printed values, needs the sizes of the run, which the parser did not receive.

    ``attempt`` is the attempt of the steps around it, or None if there is no step. `LineParser` sets it.
    """

    kind: NoticeKind = attrs.field(validator=attrs.validators.in_(get_args(NoticeKind)))
    text: str = attrs.field(default="", validator=_is_text)
    value: int | None = attrs.field(default=None, validator=_is_count)
    time_s: float | None = attrs.field(default=None, validator=_is_time)
    attempt: int | None = attrs.field(default=None, eq=False, validator=_is_count)  # equal messages are kept once

    def __attrs_post_init__(self) -> None:
        """Raise ValueError if the number or the time of this kind of notice is missing."""
        if self.kind == "total steps" and self.value is None:
            raise ValueError("invalid value None; expected the number of steps")
        if self.kind == "checkpoint" and self.time_s is None:
            raise ValueError("invalid time_s None; expected the time of the checkpoint")


@runtime_checkable
class LogParser(Protocol):
    """Parser that is fed with bytes as they arrive, cut anywhere. ``source`` distinguishes the logs of several ranks.

    A parser that does not inherit from this class may omit ``first_step``, ``printed_every`` and ``end_texts``.
    """

    first_step: int | None = None
    """The number of the framework's first step, from which the steps of a run are counted, or None if it is unknown.

    It is read again after each block.
    """

    printed_every: int = 1
    """The interval of the printed steps, if the run sets it: only multiples of it are printed."""

    end_texts: Sequence[str] = ()
    """Texts of which each complete log contains one at its end, as a notice "finished". Empty if the end is unknown."""

    def feed(self, block: bytes, source: str = "") -> Sequence[Step | Notice]:
        """Return the steps and notices that this block completes."""

    def close(self) -> Sequence[Step | Notice]:
        """Return the steps and notices of a last line without a line end."""
