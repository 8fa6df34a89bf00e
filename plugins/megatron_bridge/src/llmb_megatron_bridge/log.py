"""The lines that Megatron-LM, its forks and Megatron-Bridge print at each step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from llmb import LineParser, Notice, Step
from llmb_megatron_bridge.fields import Fields
from llmb_megatron_bridge.step_times import StepTime, StepTimes

_TIME = b"elapsed time per iteration"
_BEGIN = b"| consumed samples"
_UTILIZATION = b"GPU utilization"

_ITERATION = re.compile(rb"iteration +(\d{1,18}) */ *(\d{1,18})")
_STEP_TIME = re.compile(
    rb"Step Time : (\d[\d.eE+-]*)s GPU utilization: (-?\d[\d.eE+-]*|nan|inf) ?(?:MODEL_)?TFLOP/s/GPU"
)


class MegatronLog(LineParser):
    """Two lines a step, from two ranks, in any order.

    The last rank prints ``iteration N/TOTAL | name: value | ...``, with the time to 0.1 ms; fields come and go with
    the version and the fork. Rank 0 of Megatron-Bridge prints ``Step Time : 5.74s GPU utilization: 1636.8TFLOP/s/GPU``
    (MODEL_TFLOP/s/GPU later), to 10 ms and without a number. A log that has only these counts them from 1, at its end.

    Megatron leaves a NaN loss out of the line: what tells of it is the gradient norm, and the count of such steps.
    """

    needles = (_TIME, _BEGIN, _UTILIZATION)  # searched fastest when they are long
    first_step = 1

    def __init__(self) -> None:
        super().__init__()
        self._fields = Fields()
        self._step_times = StepTimes()
        self._begun: dict[str, bytes] = {}  # by source, a record whose line ended before its time
        self._totals: dict[str, int] = {}

    def read_line(self, line: bytes) -> list[Step | Notice]:
        """The steps of a line (more than one where ranks glued theirs together), and what it says besides."""
        found: list[Step | Notice] = []
        edges = [*(match.start() for match in _ITERATION.finditer(line)), len(line)]
        begun = self._begun.pop(self.source, None)
        if begun is not None and (time := line.find(_TIME, 0, edges[0])) >= 0:
            found += self._read_record(begun + b"| " + line[time : edges[0]])
        for begin, end in pairwise(edges):
            found += self._read_record(line[begin:end])
        if _UTILIZATION in line:
            for match in _STEP_TIME.finditer(line):
                found += self._step_times.add(StepTime(float(match[1]), float(match[2])))
        return found

    def read_torn_line(self, line: bytes) -> Sequence[Step | Notice]:
        """As `read_line`, without a last field of which digits may be missing."""
        whole = line.rfind(b"|") + 1
        return self.read_line(line[:whole] if _ITERATION.search(line) else line)

    def close(self) -> list[Step | Notice]:
        """What is held, and the step times of a log that has nothing else."""
        return [*super().close(), *self._step_times.close()]

    def _read_record(self, record: bytes) -> Iterable[Step | Notice]:
        """What one iteration's record says. One without its time may go on in the next line."""
        head, *fields = record.split(b"|")
        number, total = map(int, head.removeprefix(b"iteration").split(b"/"))
        known, figures = self._fields.read(fields)
        if "time_s" not in known:
            self._begun[self.source] = record
            return
        if self._totals.get(self.source) != total:
            self._totals[self.source] = total
            yield Notice(kind="total steps", value=total)
        yield self._step_times.complete(Step(step=number, figures=figures, **known))  # type: ignore[arg-type]  # floats
        if figures.get("grad norm", 0.0) != figures.get("grad norm", 0.0):  # NaN alone differs from itself
            yield Notice(kind="nan", text=f"the gradient norm of iteration {number} is NaN")
        elif figures.get("number of nan iterations"):
            yield Notice(kind="nan", text=f"the loss of iteration {number} is NaN")
