"""What a parser finds in a training log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import sub
from typing import Literal, Protocol, runtime_checkable

import attrs

from llmb.values.choices import one_of
from llmb.values.frozen import FrozenMap

MOST_STEPS = 1 << 63
"""Beyond the highest number that a step may have: it goes into 8 bytes."""


def _figures(value: Mapping[str, float]) -> FrozenMap[str, float]:
    """Numbers have nothing inside to freeze, and there are as many of them as a log has lines."""
    return value if isinstance(value, FrozenMap) else FrozenMap(value)


def _countable(_step: object, _field: object, number: int) -> None:
    if not isinstance(number, int) or not 0 <= number < MOST_STEPS:
        raise ValueError(f"{number!r} is not the number of a step")


@attrs.frozen(kw_only=True)
class Step:
    """One training step, with the framework's own number. Raises ValueError for a number that no step can have.

    ``time_s`` is null where the log states none; ``mean_of`` counts the steps over which the framework averaged it;
    a parser that gives null leaves it to the series: all since the step that was printed before.
    A step given again for the same attempt replaces the earlier one. ``figures`` holds whatever else was printed.
    """

    step: int = attrs.field(validator=_countable)
    time_s: float | None = None
    loss: float | None = None
    tflops_per_gpu: float | None = None
    tokens_per_s_per_gpu: float | None = None
    figures: Mapping[str, float] = attrs.field(factory=FrozenMap, converter=_figures)
    mean_of: int | None = 1
    attempt: int = 0


@runtime_checkable
class NumberedSteps(Protocol):
    """Steps in the order of their numbers, each number once, of which the numbers can be had without the steps."""

    @property
    def numbers(self) -> Sequence[int]:
        """The number of each step."""

    def __getitem__(self, index: int, /) -> Step: ...


def rhythm(numbers: Sequence[int]) -> int:
    """The distance between printed steps that is most common: a log may print each tenth. 1 until it is seen twice."""
    gaps = Counter(map(sub, numbers[1:], numbers))
    gap, seen = gaps.most_common(1)[0] if gaps else (1, 0)
    return gap if seen > 1 else 1


NoticeKind = Literal[
    "total steps", "finished", "nan", "failure", "time limit", "out of memory", "preempted", "node failure", "cancelled"
]


@attrs.frozen(kw_only=True)
class Notice:
    """Something else that a log says. ``value`` is the number of steps where the kind is "total steps".

    ``attempt`` is that of the steps around it, null where none tell; `LineParser` sees to that.
    """

    kind: NoticeKind = attrs.field(validator=one_of(NoticeKind))
    text: str = ""
    value: int | None = None
    attempt: int | None = attrs.field(default=None, eq=False)  # when it was said, not what


@runtime_checkable
class LogParser(Protocol):
    """Fed with bytes as they arrive, cut anywhere; ``source`` tells the logs of several ranks apart.

    A parser that does not inherit from this one may do without ``first_step`` and ``printed_every``.
    """

    first_step: int | None = None
    """The number that the framework gives to its first step, from which the steps of a run are counted.

    Null while it is not known; after each block it is asked for anew.
    """

    printed_every: int = 1
    """Only steps whose number is divisible by it are printed, as far as the run tells.
    """

    def feed(self, block: bytes, source: str = "") -> Sequence[Step | Notice]:
        """The steps and notices that this block completes."""

    def close(self) -> Sequence[Step | Notice]:
        """What a last line without an end still holds."""
