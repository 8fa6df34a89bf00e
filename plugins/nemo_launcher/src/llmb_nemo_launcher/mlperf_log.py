"""Records of MLPerf Training (``:::MLLOG {...}``), which NVIDIA's submissions print instead of NeMo's lines.

Their keys are in mlcommons/logging, mlperf_logging/mllog/constants.py. Times and rates are in ``tracked_stats``, of
each step or of each block of steps between two evaluations.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from llmb import Notice, Step
from llmb_nemo_launcher.json_record import json_after

RECORD = b":::MLLOG "
_MAX_STEPS = 10**15
_TIMES = ("train_step_time", "train_step_timing", "train_step_timing in s")
_LOSSES = ("reduced_train_loss", "train_loss")
_RATE = "throughput"


@attrs.define
class MLPerfRecords:
    """Reader of the records of one run.

    A record states its step as a number of samples since the start of the run, or of the block if the block begins
    with a step. GPT-3 counts tokens instead, also in its rate. Release 5.0 states the samples at the start of a block.
    """

    _batch_size: int = 0
    _sequence_length: int = 0
    _unit: int = 0  # what a step adds to the count of a record
    _block: tuple[int, bool] = (0, False)  # the step at which the block began, and whether it stated this step
    _last: int = 0  # the last step with a time
    _loss: tuple[int, float] | None = None  # the last loss that was printed without a time, and its step
    _uncounted: dict[str, float] | None = None  # the values of a block that ends at a step not yet known
    losses: list[Step] = attrs.field(factory=list)
    """The losses that the last run printed before its first time."""

    def read(self, line: bytes) -> list[Step | Notice]:
        """Return the step of a record with a time or a rate, or the notice that the training finished."""
        record = json_after(RECORD, line)
        key, value, metadata = record.get("key"), record.get("value"), _table(record.get("metadata"))
        if key == "run_start":
            self._unit, self._block, self._last = 0, (0, False), 0
            self._loss = self._uncounted = None
            self.losses.clear()
        elif key == "global_batch_size" and isinstance(value, int) and value > 0:
            self._batch_size = value
        elif key == "max_sequence_length" and isinstance(value, int) and value > 0:
            self._sequence_length = value
        elif key == "block_start":
            found, step = self._end_block(metadata), _count(metadata.get("step"))
            self._block = (self._number(metadata) or 0, False) if step is None else (step, True)
            return found
        elif key == "train_loss":
            return self._read_stats({"train_loss": value}, metadata)
        elif key == "tracked_stats":
            return self._read_stats(_table(value), metadata)
        else:
            finished = key == "run_stop" and metadata.get("status") == "success"
            return [*self._end_block(metadata), *([Notice(kind="finished")] if finished else [])]
        return []

    def _read_stats(self, stats: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[Step | Notice]:
        values = {str(name): float(number) for name, number in stats.items() if type(number) in (int, float)}
        number = self._number(metadata)
        if not values.keys() & {*_TIMES, _RATE}:
            loss = next((values[name] for name in _LOSSES if name in values), None)
            if number and loss is not None:
                self._loss = number, loss
                if not self._last:
                    self.losses.append(Step(step=number, loss=loss))
        elif number is not None and (number, False) == self._block:
            self._uncounted = values
        elif number:
            return self._step(number, values)
        return []

    def _end_block(self, metadata: Mapping[str, Any]) -> list[Step | Notice]:
        """Return the step of a block whose end was not known, if a record states it."""
        number = self._number(metadata)
        if self._uncounted is None or number is None or number <= self._block[0]:
            return []
        values, self._uncounted = self._uncounted, None
        return self._step(number, values)

    def _number(self, metadata: Mapping[str, Any]) -> int | None:
        """Return the step that ends with the samples of a record, or None if the record does not state it."""
        if "step_num" in metadata:  # of Stable Diffusion
            return _count(metadata["step_num"])
        samples, step = _count(metadata.get("samples_count")), _count(metadata.get("step"))
        count = step if samples is None else samples
        if not self._batch_size or count is None:
            return None
        if count and not self._unit:
            tokens = self._batch_size * self._sequence_length
            self._unit = tokens if tokens and count % tokens == 0 else self._batch_size
        number = count // self._unit if count else 0
        begin, states_step = self._block
        return number + begin if step is None and states_step else number

    def _step(self, number: int, values: dict[str, float]) -> list[Step | Notice]:
        """Return a step with a time, but not the mean of a block whose last step has a time of its own."""
        if number == self._last:
            return []
        rate, samples = values.get(_RATE, 0.0), self._unit or self._batch_size
        time_s = samples / rate if samples and rate > 0 else None
        time_s = next((values.pop(name) for name in _TIMES if name in values), time_s)
        loss = next((values.pop(name) for name in _LOSSES if name in values), None)
        if loss is None and self._loss and self._last < self._loss[0] <= number:
            loss = self._loss[1]
        mean_of, self._last = max(1, number - self._last), number
        return [Step(step=number, time_s=time_s, loss=loss, other_values=values, mean_of=mean_of)]


def _count(value: object) -> int | None:
    """Return a number of samples or steps, which some releases write as 960.0."""
    return int(value) if isinstance(value, (int, float)) and 0 <= value < _MAX_STEPS else None


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
