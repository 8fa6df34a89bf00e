"""Parser of the step lines of Megatron-LM, its forks and Megatron-Bridge."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import attrs

from llmb import LineParser, Notice, Step
from llmb_megatron_bridge.log_fields import Meanings, read_fields
from llmb_megatron_bridge.step_times import StepTime, StepTimes

_TIME = b"elapsed time per iteration"
_UTILIZATION = b"GPU utilization"

_ITERATION = re.compile(rb"iteration +(\d{1,18}) */ *(\d{1,18})")
_NUMBER = rb"\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?"
_STEP_TIME = re.compile(
    rb"Step Time : (%b)s GPU utilization: (-?%b|nan|inf) ?(?:MODEL_)?TFLOP/s/GPU" % (_NUMBER, _NUMBER)
)


class MegatronLog(LineParser):
    """Parser of two lines per step, from two ranks, in any order.

    The last rank prints ``iteration N/TOTAL | name: value | ...``, with the time to 0.1 ms. The fields depend on the
    version and the fork. Rank 0 of Megatron-Bridge prints ``Step Time : 5.74s GPU utilization: 1636.8TFLOP/s/GPU``
    (later MODEL_TFLOP/s/GPU), to 10 ms and without a number. If a log has only such lines, they are counted from 1 at
    its end.

    A time is the mean since the line before (``--log-interval``).

    Megatron omits a NaN loss from the line. The gradient norm and the number of such iterations show it.
    """

    needles = (_TIME, _UTILIZATION)
    first_step = 1

    def __init__(self) -> None:
        super().__init__()
        self._meanings = Meanings()
        self._step_times = StepTimes()
        self._totals: dict[str, bytes] = {}  # of each source, as printed

    def read_line(self, line: bytes) -> Sequence[Step | Notice]:
        """Return the steps of a line (several if ranks joined their lines), and its notices."""
        found: list[Step | Notice] = []
        if _TIME in line:
            _, *parts = _ITERATION.split(line)
            if not parts and (begin := _ITERATION.search(self.line_before())):  # a record of two lines
                parts = [*begin.groups(), b" " + line[line.index(_TIME) :]]
            while parts:
                number, total, text, *parts = parts
                self._read_record(int(number), total, text, found)
        if _UTILIZATION in line:
            for time_s, tflops_per_gpu in _STEP_TIME.findall(line):
                time = StepTime(float(time_s), float(tflops_per_gpu))
                step = self._step_times.take_step(time)
                if step and step.tflops_per_gpu is None:
                    found.append(attrs.evolve(step, tflops_per_gpu=time.tflops_per_gpu))
        return found

    def read_torn_line(self, line: bytes) -> Sequence[Step | Notice]:
        """Return the steps of a line without a line end, but not a last field that may lack digits."""
        end = line.rfind(b"|") + 1
        return self.read_line(line[:end] if _ITERATION.search(line) else line)

    def close(self) -> list[Step | Notice]:
        """Return what was held back, and the step times of a log without step numbers."""
        return [*super().close(), *self._step_times.close()]

    def _read_record(self, number: int, total: bytes, text: bytes, found: list[Step | Notice]) -> None:
        """Add the step of a record, the total number of steps and a NaN. A record without a time is skipped."""
        known, figures = read_fields(text, self._meanings)
        if "time_s" not in known:
            return
        if self._totals.get(self.source) != total:
            self._totals[self.source] = total
            found.append(Notice(kind="total steps", value=int(total)))
        time = self._step_times.take_time(number, known["time_s"])
        if time:
            known.setdefault("tflops_per_gpu", time.tflops_per_gpu)
        step = Step(step=number, figures=figures, mean_of=None, **known)  # type: ignore[arg-type]  # floats
        found.append(step)
        if not time:
            self._step_times.keep_step(step)
        if math.isnan(figures.get("grad norm", 0)):
            found.append(Notice(kind="nan", text=f"the gradient norm of iteration {number} is NaN"))
        elif figures.get("number of nan iterations"):
            found.append(Notice(kind="nan", text=f"the loss of iteration {number} is NaN"))
