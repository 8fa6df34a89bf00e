"""The lines that Megatron-LM, its forks and Megatron-Bridge print at each step."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmb import LineParser, Notice, Step
from llmb_megatron_bridge.log_fields import Fields
from llmb_megatron_bridge.step_times import StepTime, StepTimes

_TIME = b"elapsed time per iteration"
_UTILIZATION = b"GPU utilization"

_ITERATION = re.compile(rb"iteration +(\d{1,18}) */ *(\d{1,18})")
_USUAL = re.compile(
    rb"iteration +(\d{1,18}) */ *(\d{1,18}) \|(?: (?:consumed|skipped) \w+: +\d+ \|)*"
    rb" elapsed time per iteration \(ms\): (\d{1,12}\.\d) \|"
)
_OWN_RATE = re.compile(rb"\| (?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPs): ")
_NAN = b"nan"
_NO_NAN = b"nan iterations:   0 |"
_FIGURE = rb"\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?"
_STEP_TIME = re.compile(
    rb"Step Time : (%b)s GPU utilization: (-?%b|nan|inf) ?(?:MODEL_)?TFLOP/s/GPU" % (_FIGURE, _FIGURE)
)


class MegatronLog(LineParser):
    """Two lines a step, from two ranks, in any order.

    The last rank prints ``iteration N/TOTAL | name: value | ...``, with the time to 0.1 ms; fields come and go with
    the version and the fork. Rank 0 of Megatron-Bridge prints ``Step Time : 5.74s GPU utilization: 1636.8TFLOP/s/GPU``
    (MODEL_TFLOP/s/GPU later), to 10 ms and without a number. A log that has only these counts them from 1, at its end.

    A time is the mean since the line before (``--log-interval``).

    Megatron leaves a NaN loss out of the line: what tells of it is the gradient norm, and the count of such steps.
    """

    needles = (_TIME, _UTILIZATION)
    first_step = 1

    def __init__(self) -> None:
        super().__init__()
        self._fields = Fields()
        self._step_times = StepTimes()
        self._totals: dict[str, bytes] = {}  # as it is printed

    def glance(self, line: bytes) -> tuple[int, bytes] | None:
        """An iteration's line like those before it, or the step time of one."""
        match = _USUAL.search(line) if _TIME in line else None
        if match is None:
            return self._glance_at_step_time(line)
        number, total, time_ms = match.groups()
        if total != self._totals.get(self.source) or _has_nan(line):
            return None
        step = int(number)
        return step, self._with_tflops(step, float(time_ms) / 1000, line[match.start() :])

    def _glance_at_step_time(self, line: bytes) -> tuple[int, bytes] | None:
        match = _STEP_TIME.search(line)
        if match is None:
            return None
        return self._add_step_time(StepTime(float(match[1]), match[2])) or self.nothing_new

    def _add_step_time(self, time: StepTime) -> tuple[int, bytes] | None:
        """The step that this belongs to, once more and now with its TFLOP/s, if it was printed before."""
        printed = self._step_times.add(time)
        if printed is None or _OWN_RATE.search(printed[2]):
            return None
        return printed[0], _joined(printed[2], time.tflops_per_gpu)

    def _with_tflops(self, step: int, time_s: float, text: bytes) -> bytes:
        """The step's text with what the other rank said of it, if it did so already; else the step waits for that."""
        tflops = self._step_times.take(step, time_s)
        if tflops is None:
            self._step_times.wait((step, time_s, text))
            return text
        return _joined(text, tflops)

    def read_step(self, text: bytes) -> Step:
        """The step of the first iteration's record in a text; behind a line feed stand the TFLOP/s of another line."""
        line, _, tflops = text.partition(b"\n")
        match = _ITERATION.search(line)
        assert match is not None
        after = _ITERATION.search(line, match.end())
        known, figures = self._fields.read(line[match.end() : after.start() if after else len(line)])
        if tflops:
            known.setdefault("tflops_per_gpu", float(tflops))
        return Step(step=int(match[1]), figures=figures, mean_of=None, **known)  # type: ignore[arg-type]  # floats' names

    def read_line(self, line: bytes) -> list[Step | Notice]:
        """The steps of a line (more than one where ranks glued theirs together), and what it says besides."""
        found: list[Step | Notice] = []
        match = _ITERATION.search(line)
        if match is None and _TIME in line and (match := _ITERATION.search(self.line_before())):  # broken in two
            self._read_record(match[0] + b" | " + line[line.index(_TIME) :], found)
            match = None
        while match is not None:
            after = _ITERATION.search(line, match.end())
            self._read_record(line[match.start() : after.start() if after else len(line)], found)
            match = after
        if _UTILIZATION in line:
            for time_s, tflops in _STEP_TIME.findall(line):
                row = self._add_step_time(StepTime(float(time_s), tflops))
                found += [] if row is None else [self.read_step(row[1])]
        return found

    def read_torn_line(self, line: bytes) -> Sequence[Step | Notice]:
        """As `read_line`, without a last field of which digits may be missing."""
        whole = line.rfind(b"|") + 1
        return self.read_line(line[:whole] if _ITERATION.search(line) else line)

    def close(self) -> list[Step | Notice]:
        """What is held, and the step times of a log that has nothing else."""
        return [*super().close(), *self._step_times.close()]

    def _read_record(self, text: bytes, found: list[Step | Notice]) -> None:
        """What one iteration's record says; nothing, where it has no time."""
        step, match = self.read_step(text), _ITERATION.match(text)
        if step.time_s is None or match is None:
            return
        if self._totals.get(self.source) != match[2]:
            self._totals[self.source] = match[2]
            found.append(Notice(kind="total steps", value=int(match[2])))
        whole = self._with_tflops(step.step, step.time_s, text)
        found.append(step if whole is text else self.read_step(whole))
        norm = step.figures.get("grad norm")
        if norm is not None and norm != norm:  # NaN alone differs from itself
            found.append(Notice(kind="nan", text=f"the gradient norm of iteration {step.step} is NaN"))
        elif step.figures.get("number of nan iterations"):
            found.append(Notice(kind="nan", text=f"the loss of iteration {step.step} is NaN"))


def _joined(text: bytes, tflops_per_gpu: bytes) -> bytes:
    return text + b"\n" + tflops_per_gpu


def _has_nan(line: bytes) -> bool:
    """Whether there is a NaN, other than in the name of the field that counts them, which has seen none."""
    named = line.count(_NAN)
    return named > 1 or (named == 1 and _NO_NAN not in line)
