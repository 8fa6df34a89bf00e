"""Parser of the step lines of Megatron-LM, its forks and Megatron-Bridge.

The last rank prints an iteration line, whose fields depend on the version and the fork. Its time has a
resolution of 0.1 ms, and is the mean since the line before (``--log-interval``)::

     iteration 7/ 50 | elapsed time per iteration (ms): 5741.5 | lm loss: 6.5E+00 | ... | number of nan iterations: 0 |

Rank 0 of Megatron-Bridge prints its own time of the same step, with two decimals and without a number. (Older versions
print ``TFLOP/s/GPU``.) ::

    Step Time : 5.74s GPU utilization: 1636.8MODEL_TFLOP/s/GPU

Timers may follow a step, of each rank or of the fastest and the slowest one::

    times across ranks (ms):
      forward-compute:
         rank  0: 600.00
         rank  1: 648.00
    (min, max) time across ranks (ms):
        save-checkpoint ......: (23683.77, 23684.20)

The end of a run that stops as planned, at its ``--exit-interval`` or its target loss::

    [exiting program at iteration 50] datetime: 2026-01-01 10:00:00
    [EarlyStop] Reached target! Stopping training. eval_loss: 3.29
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from llmb import LineParser, Notice, Step
from llmb_megatron_bridge.deepspeed_lines import DEEPSPEED, DeepSpeedLines
from llmb_megatron_bridge.iteration_line_fields import Meanings, read_fields, unwrap
from llmb_megatron_bridge.pair_step_lines import StepLinePairs, StepTimeLine
from llmb_megatron_bridge.rank_timers import COMPUTE, RANK, SAVED, TIMERS, RankTimers, checkpoint_of

_TIME = b"elapsed time per iteration"
_LAST_FIELD = b"number of nan iterations: "
_STEP_TIME = b"Step Time"
_EXIT = b"exiting program at iteration "
_TARGET = b"[EarlyStop] Reached target!"
_ALWAYS = (_TIME, _STEP_TIME, _EXIT, _TARGET)

_Part = Literal["start", "between steps", "timers", "wrapped step"]
_NEEDLES: Mapping[_Part, Sequence[bytes]] = {
    "start": (_TIME, _STEP_TIME, b"iteration ", DEEPSPEED),
    "between steps": (*_ALWAYS, TIMERS),
    "timers": (*_ALWAYS, TIMERS, COMPUTE, RANK, SAVED),
    "wrapped step": (*_ALWAYS, b"|"),
}
"""Parts of a log, with the texts to search for in each. The first iteration line may be wrapped before its time."""

_ITERATION = re.compile(rb"iteration +(\d{1,18}) */ *(\d{1,18}+)(?!,\d)")
_NUMBER = rb"\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?"
_FLOPS = rb"GPU utilization: (-?%b|nan|inf) ?(?:MODEL_)?TFLOP/s/GPU" % _NUMBER
_STEP_TIME_LINE = re.compile(
    rb"Step Time ?: (%b)s(?: %b| ?, ?(%b) tok/s/gpu(?:, %b)?)" % (_NUMBER, _FLOPS, _NUMBER, _FLOPS)
)
_ENDED = re.compile(rb"number of nan iterations: +\d+ ?\|")
_CLOSED = re.compile(rb"\|\s*\n(?![\s\"|]*(?:[a-z][\w ()/-]*:|\Z))")
"""A bar at the end of a line, and text below it that is no field."""

_PLANNED_EXIT = re.compile(rb"exiting program at iteration (\d{1,18})\b")


class MegatronLog(LineParser):
    """Parser of two lines per step, from two ranks, in any order.

    If a log has lines of rank 0 only, they are counted from 1 at its end. If it has lines of DeepSpeed only, the steps
    are returned at its end.

    Some copies of logs have wrapped lines. Then a step is returned as soon as its time is printed, and again with the
    fields of each further line. A step is also returned again if the compute times of its ranks follow.

    A run that stops at its exit interval has as many steps as it did.
    """

    first_step = 1

    def __init__(self) -> None:
        super().__init__()
        self._go_to("start")
        self._meanings = Meanings()
        self._step_times = StepLinePairs()
        self._deepspeed = DeepSpeedLines()
        self._timers = defaultdict[str, RankTimers](RankTimers)  # of each source
        self._totals: dict[str, bytes] = {}  # of each source, as printed
        self._wrapped: dict[tuple[str, int], StepTimeLine | None] = {}  # the last step, with its line of rank 0

    def _go_to(self, part: _Part) -> None:
        self._part, self.needles = part, _NEEDLES[part]

    def read_line(self, line: bytes) -> Sequence[Step | Notice]:
        """Return the steps of a line (several if ranks joined their lines), and its notices."""
        found: list[Step | Notice] = []
        if DEEPSPEED in line and self._part == "start":
            self._deepspeed.read(line)
        if TIMERS in line and self._part == "between steps":
            self._go_to("timers")
        if self._part == "timers":
            self._timers[self.source].read(line)
            if saved := checkpoint_of(line):
                found.append(saved)
        if end := self._read_end(line):
            return [*found, end]
        if _TIME in line or self._part in ("start", "wrapped step"):  # parts of a wrapped line may have no time
            found += self._read_iterations(line)
        if _STEP_TIME in line:
            found += self._read_step_times(line)
        return found

    def read_torn_line(self, line: bytes) -> Sequence[Step | Notice]:
        """Return the steps of a line without a line end, but not a last field that may lack digits."""
        end = line.rfind(b"|") + 1
        return self.read_line(line[:end] if _ITERATION.search(line) else line)

    def close(self) -> list[Step | Notice]:
        """Return what was held back, and the step times of a log without step numbers."""
        last = super().close()
        timed = [step for timers in self._timers.values() if (step := timers.take_step())]
        deepspeed = self._deepspeed.close() if self._part == "start" else []
        return [*last, *timed, *deepspeed, *self._step_times.close()]

    def _read_end(self, line: bytes) -> Notice | None:
        """Return the notice of a training that stops as planned, at its exit interval or its target, or None."""
        if stop := _PLANNED_EXIT.search(line):
            self._totals.pop(self.source, None)
            return Notice(kind="total steps", value=int(stop[1]))
        return Notice(kind="planned end") if _TARGET in line else None

    def _read_step_times(self, line: bytes) -> list[Step]:
        """Return the steps, printed before, of which a line of rank 0 has the TFLOP/s."""
        found = []
        for time_s, tflops, tokens, other_tflops in _STEP_TIME_LINE.findall(line):
            rates = {"tflops_per_gpu": float(tflops)} if tflops else {"tokens_per_s_per_gpu": float(tokens)}
            if other_tflops:
                rates["tflops_per_gpu"] = float(other_tflops)
            step = self._step_times.take_step(StepTimeLine(float(time_s), rates))
            if step and step.tflops_per_gpu is None:
                found.append(attrs.evolve(step, **rates))  # type: ignore[arg-type]  # floats
        return found

    def _read_iterations(self, line: bytes) -> list[Step | Notice]:
        """Return the steps of iteration lines, or the step of a wrapped one that began in a line before."""
        _, *parts = _ITERATION.split(line)  # number, total and fields of each
        complete = _LAST_FIELD in line
        if parts or _TIME in line:
            self._go_to("between steps" if parts and complete else "wrapped step")
        if not parts:
            return self._read_wrapped(line)
        found: list[Step | Notice] = []
        while parts:
            number, total, fields, *parts = parts
            found += self._read_record(int(number), total, fields, wrapped=not complete)
        return found

    def _read_wrapped(self, line: bytes) -> list[Step | Notice]:
        """Return the step whose iteration line began in a line before, with the fields that are printed so far."""
        before = self.text_before()
        if self.label:
            before, line = before.replace(b"\n" + self.label, b"\n"), line.removeprefix(self.label)
        begins = [*_ITERATION.finditer(before)]
        if not begins:
            return []
        number, total = begins[-1].groups()
        fields = before[begins[-1].end() :]
        if _ENDED.search(fields) or _CLOSED.search(fields + line):
            return []
        return self._read_record(int(number), total, unwrap(fields + line), wrapped=True)

    def _read_record(self, number: int, total: bytes, text: bytes, *, wrapped: bool) -> list[Step | Notice]:
        """Return the step of an iteration line, with notices. Return nothing if its time is missing."""
        known, other_values = read_fields(text, self._meanings)
        if "time_s" not in known:
            return []
        found: list[Step | Notice] = []
        if self._totals.get(self.source) != total:
            self._totals[self.source] = total
            found.append(Notice(kind="total steps", value=int(total)))
        key = self.source, number
        again = wrapped and key in self._wrapped
        time = self._wrapped[key] if again else self._step_times.take_time(number, known["time_s"])
        self._wrapped = {key: time} if wrapped else {}
        if time:
            known = {**time.rates, **known}
        step = Step(step=number, other_values=other_values, mean_of=None, **known)  # type: ignore[arg-type]  # floats
        if not time and not again:
            self._step_times.keep_step(step)
        timers = self._timers[self.source]
        if timed := timers.take_step():
            found.append(timed)
        timers.begin(step)
        return [*found, step, *_nan_notices(step)]


def _nan_notices(step: Step) -> list[Notice]:
    """Return the notice of a NaN that other fields show, because Megatron omits a NaN loss from the line."""
    if math.isnan(step.other_values.get("grad norm", 0)):
        return [Notice(kind="nan", text=f"the gradient norm of iteration {step.step} is NaN")]
    if step.other_values.get("number of nan iterations"):
        return [Notice(kind="nan", text=f"the loss of iteration {step.step} is NaN")]
    return []
