"""The lines that Megatron-LM, its forks and Megatron-Bridge print at each step."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmb import LineParser, Notice, Step
from llmb_megatron_bridge.fields import Fields
from llmb_megatron_bridge.step_times import StepTime, StepTimes

_TIME = b"elapsed time per iteration"
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

    needles = (_TIME, _UTILIZATION)
    first_step = 1

    def __init__(self) -> None:
        super().__init__()
        self._fields = Fields()
        self._step_times = StepTimes()
        self._totals: dict[str, int] = {}

    def read_line(self, line: bytes) -> list[Step | Notice]:
        """The steps of a line (more than one where ranks glued theirs together), and what it says besides."""
        found: list[Step | Notice] = []
        match = _ITERATION.search(line)
        if match is None and _TIME in line and (match := _ITERATION.search(self.line_before())):  # broken in two
            record = b" " + line[line.index(_TIME) :]
            self._read_record(int(match[1]), int(match[2]), record, found)
            match = None
        while match is not None:
            after = _ITERATION.search(line, match.end())
            record = line[match.end() : after.start() if after else len(line)]
            self._read_record(int(match[1]), int(match[2]), record, found)
            match = after
        if _UTILIZATION in line:
            for time_s, tflops in _STEP_TIME.findall(line):
                found += self._step_times.add(StepTime(float(time_s), float(tflops)))
        return found

    def read_torn_line(self, line: bytes) -> Sequence[Step | Notice]:
        """As `read_line`, without a last field of which digits may be missing."""
        whole = line.rfind(b"|") + 1
        return self.read_line(line[:whole] if _ITERATION.search(line) else line)

    def close(self) -> list[Step | Notice]:
        """What is held, and the step times of a log that has nothing else."""
        return [*super().close(), *self._step_times.close()]

    def _read_record(self, number: int, total: int, text: bytes, found: list[Step | Notice]) -> None:
        """What one iteration's record says behind its number; nothing, where it has no time."""
        known, figures = self._fields.read(text)
        if "time_s" not in known:
            return
        if self._totals.get(self.source) != total:
            self._totals[self.source] = total
            found.append(Notice(kind="total steps", value=total))
        tflops = self._step_times.take(number, known["time_s"])
        if tflops is not None:
            known.setdefault("tflops_per_gpu", tflops)
        step = Step(step=number, figures=figures, **known)  # type: ignore[arg-type]  # floats' names
        if tflops is None:
            self._step_times.wait(step)
        found.append(step)
        norm = figures.get("grad norm")
        if norm is not None and norm != norm:  # NaN alone differs from itself
            found.append(Notice(kind="nan", text=f"the gradient norm of iteration {number} is NaN"))
        elif figures.get("number of nan iterations"):
            found.append(Notice(kind="nan", text=f"the loss of iteration {number} is NaN"))
