"""Parser of the step lines of Megatron-LM, its forks and Megatron-Bridge."""

import math
import re
from collections import defaultdict
from collections.abc import Sequence

import attrs

from llmb import LineParser, Notice, Step
from llmb_megatron_bridge.log_fields import Meanings, read_fields, unwrap
from llmb_megatron_bridge.rank_timers import COMPUTE, RANK, SAVED, TIMERS, RankTimers, checkpoint_of
from llmb_megatron_bridge.step_times import StepTime, StepTimes

_TIME = b"elapsed time per iteration"
_STEP_TIME = b"Step Time"
_NUMBERED = b"iteration "
_SEPARATOR = b"|"

_ITERATION = re.compile(rb"iteration +(\d{1,18}) */ *(\d{1,18}+)(?!,\d)")
_NUMBER = rb"\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?"
_STEP_TIME_LINE = re.compile(
    rb"Step Time ?: (%b)s(?: GPU utilization: (-?%b|nan|inf) ?(?:MODEL_)?TFLOP/s/GPU| ?, ?(%b) tok/s/gpu)"
    % (_NUMBER, _NUMBER, _NUMBER)
)
_ENDED = re.compile(rb"number of nan iterations: +\d+ ?\|")
_CLOSED = re.compile(rb"\|\s*\n(?![\s\"|]*(?:[a-z][\w ()/-]*:|\Z))")
"""A bar at the end of a line, and text below it that is no field."""

_LAST_FIELD = b"number of nan iterations: "

_EXIT = b"exiting program at iteration "
_TARGET = b"[EarlyStop] Reached target!"
_PLANNED_EXIT = re.compile(rb"exiting program at iteration (\d{1,18})\b")

_UNWRAPPED = (_TIME, _STEP_TIME, _EXIT, _TARGET, TIMERS)
_IN_TIMERS = (*_UNWRAPPED, COMPUTE, RANK, SAVED)
_WRAPPED = (_TIME, _STEP_TIME, _EXIT, _TARGET, _SEPARATOR)


class MegatronLog(LineParser):
    """Parser of two lines per step, from two ranks, in any order.

    The last rank prints ``iteration N/TOTAL | name: value | ...``, with the time to 0.1 ms. The fields depend on the
    version and the fork. Rank 0 of Megatron-Bridge prints ``Step Time : 5.74s GPU utilization: 1636.8TFLOP/s/GPU``
    (later MODEL_TFLOP/s/GPU), to 10 ms and without a number. If a log has only such lines, they are counted from 1 at
    its end.

    Some copies of logs have wrapped lines. Their records are read from all lines since the ``iteration``, and a step is
    returned again with the fields of each further line.

    A time is the mean since the line before (``--log-interval``).

    If Megatron prints the timers of all ranks after a step, the step is returned again with their compute times. The
    timer of a checkpoint is returned as a notice.

    A run that stops at its exit interval (``--exit-interval``) has as many steps as it did.

    Megatron omits a NaN loss from the line. The gradient norm and the number of such iterations show it.
    """

    needles: Sequence[bytes] = (_TIME, _STEP_TIME, _NUMBERED)
    first_step = 1

    def __init__(self) -> None:
        super().__init__()
        self._meanings = Meanings()
        self._step_times = StepTimes()
        self._timers = defaultdict[str, RankTimers](RankTimers)  # of each source
        self._totals: dict[str, bytes] = {}  # of each source, as printed
        self._wrapped: tuple[str, int, StepTime | None] | None = None  # the last step of a wrapped record

    def read_line(self, line: bytes) -> Sequence[Step | Notice]:
        """Return the steps of a line (several if ranks joined their lines), and its notices."""
        found: list[Step | Notice] = []
        if TIMERS in line and self.needles is _UNWRAPPED:
            self.needles = _IN_TIMERS
        if self.needles is _IN_TIMERS:
            self._timers[self.source].read(line)
            found += filter(None, [checkpoint_of(line)])
        if end := self._read_end(line):
            return [*found, end]
        if _TIME in line or self.needles not in (_UNWRAPPED, _IN_TIMERS):
            _, *parts = _ITERATION.split(line)
            complete = _LAST_FIELD in line
            if parts or _TIME in line:
                self.needles = _UNWRAPPED if parts and complete else _WRAPPED
            if not parts:
                self._read_wrapped(line, found)
            while parts:
                number, total, text, *parts = parts
                self._read_record(int(number), total, text, found, wrapped=not complete)
        if _STEP_TIME in line:
            self._read_step_times(line, found)
        return found

    def _read_end(self, line: bytes) -> Notice | None:
        """Return the notice of a training that stops as planned, at its exit interval or its target, or None."""
        if stop := _PLANNED_EXIT.search(line):
            self._totals.pop(self.source, None)
            return Notice(kind="total steps", value=int(stop[1]))
        return Notice(kind="planned end") if _TARGET in line else None

    def _read_wrapped(self, line: bytes, found: list[Step | Notice]) -> None:
        """Add the step of a record that began in a line before, as far as it is printed."""
        before, line = self.text_before(), line.removeprefix(self.label)
        if self.label:
            before = before.replace(b"\n" + self.label, b"\n")
        begins = [*_ITERATION.finditer(before)]
        if not begins:
            return
        number, total = begins[-1].groups()
        record = before[begins[-1].end() :]
        if not _ENDED.search(record) and not _CLOSED.search(record + line):
            self._read_record(int(number), total, unwrap(record + line), found, wrapped=True)

    def _read_step_times(self, line: bytes, found: list[Step | Notice]) -> None:
        for time_s, tflops, tokens in _STEP_TIME_LINE.findall(line):
            rates = {"tflops_per_gpu": float(tflops)} if tflops else {"tokens_per_s_per_gpu": float(tokens)}
            step = self._step_times.take_step(StepTime(float(time_s), rates))
            if step and step.tflops_per_gpu is None:
                found.append(attrs.evolve(step, **rates))  # type: ignore[arg-type]  # floats

    def read_torn_line(self, line: bytes) -> Sequence[Step | Notice]:
        """Return the steps of a line without a line end, but not a last field that may lack digits."""
        end = line.rfind(b"|") + 1
        return self.read_line(line[:end] if _ITERATION.search(line) else line)

    def close(self) -> list[Step | Notice]:
        """Return what was held back, and the step times of a log without step numbers."""
        last = super().close()
        timed = [step for timers in self._timers.values() if (step := timers.take_step())]
        return [*last, *timed, *self._step_times.close()]

    def _read_record(
        self, number: int, total: bytes, text: bytes, found: list[Step | Notice], *, wrapped: bool
    ) -> None:
        """Add the step of a record, the total number of steps and a NaN. A record without a time is skipped."""
        known, figures = read_fields(text, self._meanings)
        if "time_s" not in known:
            return
        if self._totals.get(self.source) != total:
            self._totals[self.source] = total
            found.append(Notice(kind="total steps", value=int(total)))
        again = wrapped and self._wrapped is not None and self._wrapped[:2] == (self.source, number)
        time = self._wrapped[2] if again and self._wrapped else self._step_times.take_time(number, known["time_s"])
        self._wrapped = (self.source, number, time) if wrapped else None
        if time:
            known = {**time.rates, **known}
        step = Step(step=number, figures=figures, mean_of=None, **known)  # type: ignore[arg-type]  # floats
        timers = self._timers[self.source]
        if timed := timers.take_step():
            found.append(timed)
        timers.begin(step)
        found.append(step)
        if not time and not again:
            self._step_times.keep_step(step)
        if math.isnan(figures.get("grad norm", 0)):
            found.append(Notice(kind="nan", text=f"the gradient norm of iteration {number} is NaN"))
        elif figures.get("number of nan iterations"):
            found.append(Notice(kind="nan", text=f"the loss of iteration {number} is NaN"))
