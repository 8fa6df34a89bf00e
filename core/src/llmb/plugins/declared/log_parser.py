"""The log parser of a declared framework."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from llmb.logs.steps.line_parser import LineParser
from llmb.plugins.declared.line_patterns import DAY_S, as_number
from llmb.plugins.declared.log_format import LogFormat
from llmb.plugins.declared.value_names_and_units import (
    CLOCKS,
    KNOWN,
    NEED_RUN,
    TFLOPS_PER_GPU,
    TIMES,
    TOKENS_PER_S_PER_GPU,
)
from llmb.values.run import Run
from llmb.values.steps import MAX_STEPS, Notice, Step


@attrs.define
class _Rank:
    """The latest step of one rank in one log: its number, its values, and those of the step before it."""

    number: int = -1
    values: dict[str, float] = attrs.field(factory=dict)
    number_before: int = -1
    clock_before: float | None = None
    lines: int = 0

    def begin(self, number: int, values: dict[str, float]) -> None:
        """Begin a step."""
        self.clock_before, self.number_before = _scaled(self.values, CLOCKS), self.number
        self.number, self.values = number, values


class DeclaredLog(LineParser):
    """Reads the lines of a [log] table.

    Of several lines in the table, the first that matches counts. A line without a step number adds its values to the
    latest step of its rank. Without the run, values that depend on its sizes are None.
    """

    def __init__(self, log: LogFormat, run: Run[Any] | None) -> None:
        super().__init__()
        self._log = log
        self._run = run
        self._ranks: dict[tuple[str, bytes], _Rank] = {}
        self._total: int | None = None
        self.needles = log.needles
        self.first_step = log.table.first_step
        self.printed_every = log.table.printed_every
        self.end_texts = log.table.end

    def read_line(self, line: bytes) -> Iterator[Step | Notice]:
        """Yield the step of a line, the end of the training or a loss of NaN."""
        return self._read(line, torn=False)

    def read_torn_line(self, line: bytes) -> Iterator[Step | Notice]:
        """Yield the same as `read_line`, without a number at the end, which may lack digits."""
        return self._read(line, torn=True)

    def _read(self, line: bytes, *, torn: bool) -> Iterator[Step | Notice]:
        for reader in self._log.readers:
            if reader.needle in line and (texts := reader.read(line, torn=torn)) is not None:
                yield from self._take({name: as_number(name, text) for name, text in texts.items()})
                break
        if any(text in line for text in self._log.nan):
            yield Notice(kind="nan", text=line[:200].decode(errors="replace"))
        if any(text in line for text in self._log.end):
            yield Notice(kind="finished")

    def _take(self, values: dict[str, float]) -> Iterator[Step | Notice]:
        """Begin a step with these values, or add them to the latest one."""
        total = values.pop("total_steps", math.nan)
        if 0 < total < MAX_STEPS and total != self._total:
            self._total = int(total)
            yield Notice(kind="total steps", value=self._total)
        if not values:
            return
        if not self._run and (unused := [name for name in NEED_RUN if name in values]):
            yield Notice(kind="run unknown", text=", ".join(unused))
        rank = self._ranks.setdefault((self.source, self.label), _Rank())
        number = self._number(values, rank)
        if number is not None:
            rank.begin(number, values)
        elif rank.number >= 0:
            rank.values = {**rank.values, **values}
        else:
            return
        yield self._step(rank)

    def _number(self, values: dict[str, float], rank: _Rank) -> int | None:
        """Return the number of the step that begins with these values, or None if they belong to the latest one."""
        is_numbered = "step" in values or ("samples" in values and self._run)
        if is_numbered or not (self._log.counts_lines or "samples" in values):
            return _step_number(values, self._run)
        if self._log.counts_lines and rank.lines and not rank.values.keys() & values.keys():
            return None  # another line of the same step
        rank.lines += 1
        first = 1 if self._log.table.first_step is None else self._log.table.first_step
        return first - 1 + rank.lines * self.printed_every

    def _step(self, rank: _Rank) -> Step:
        values, run = rank.values, self._run
        time_s, mean_of = _step_time_s(values, run), None if self._log.table.time_is_mean else 1
        now, steps = _scaled(values, CLOCKS), rank.number - rank.number_before
        if now is not None and rank.clock_before is not None and rank.number_before >= 0 and steps > 0:
            time_s, mean_of = _elapsed_s(rank.clock_before, now) / steps, steps
        return Step(
            step=rank.number,
            time_s=time_s,
            loss=values.get("loss"),
            tflops_per_gpu=_per_gpu(values, "tflops", TFLOPS_PER_GPU, run),
            tokens_per_s_per_gpu=_per_gpu(values, "tokens_per_s", TOKENS_PER_S_PER_GPU, run),
            other_values={name: value for name, value in values.items() if name not in KNOWN},
            mean_of=mean_of,
        )


def _step_number(values: Mapping[str, float], run: Run[Any] | None) -> int | None:
    """Return the number of a step, or None if the values have none. ``samples`` need the run."""
    number = values.get("step", math.nan)
    if run and math.isfinite(samples := values.get("samples", math.nan)):
        number = math.floor(samples / run.parallelism.global_batch_size)
    return int(number) if 0 <= number < MAX_STEPS and float(number).is_integer() else None


def _elapsed_s(before: float, now: float) -> float:
    """Return the seconds between two times of day. A time without a date that goes back has passed midnight."""
    return now - before + (DAY_S if now < before < 2 * DAY_S else 0)


def _step_time_s(values: Mapping[str, float], run: Run[Any] | None) -> float | None:
    """Return the step time in seconds: a printed one, else that of a printed rate, or None."""
    if (time_s := _scaled(values, TIMES)) is not None:
        return time_s
    if rate := values.get("steps_per_s"):
        return 1 / rate
    if run and (rate := values.get("samples_per_s")):
        return run.parallelism.global_batch_size / rate
    if run and (rate := _per_gpu(values, "tokens_per_s", TOKENS_PER_S_PER_GPU, run)):
        return run.parallelism.global_batch_size * run.seq_len / (run.gpus * rate)
    return None


def _per_gpu(values: Mapping[str, float], total: str, units: Mapping[str, float], run: Run[Any] | None) -> float | None:
    """Return the share of one GPU in the value ``total`` of all GPUs, else the value in one of these units."""
    return values[total] / run.gpus if run and total in values else _scaled(values, units)


def _scaled(values: Mapping[str, float], units: Mapping[str, float]) -> float | None:
    """Return a value in the base unit, or None if the values have it in none of these units."""
    return next((values[name] / unit for name, unit in units.items() if name in values), None)
