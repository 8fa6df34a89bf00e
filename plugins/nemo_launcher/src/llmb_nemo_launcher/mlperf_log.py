"""Records of MLPerf Training (``:::MLLOG {...}``), which NVIDIA's submissions print instead of NeMo's lines.

Their keys are in mlcommons/logging, mlperf_logging/mllog/constants.py. The rates are in ``tracked_stats``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from llmb import Notice, Step

RECORD = b":::MLLOG "
_MOST_STEPS = 10**15


class MLPerfRecords:
    """Reader of the records of one run."""

    def __init__(self) -> None:
        self._batch_size = 0
        self._last = 0

    def read(self, line: bytes) -> list[Step | Notice]:
        """Return the step of a record with rates, or the notice that the training finished."""
        try:
            record, _ = json.JSONDecoder().raw_decode(line[line.index(RECORD) + len(RECORD) :].decode(errors="replace"))
        except ValueError:
            return []
        if not isinstance(record, dict):
            return []
        key, value, metadata = record.get("key"), record.get("value"), _table(record.get("metadata"))
        if key == "run_start":
            self._last = 0
        elif key == "global_batch_size" and isinstance(value, int) and value > 0:
            self._batch_size = value
        elif key == "run_stop" and metadata.get("status") == "success":
            return [Notice(kind="finished")]
        elif key == "tracked_stats":
            return self._read_stats(_table(value), metadata.get("samples_count", metadata.get("step")))
        return []

    def _read_stats(self, stats: Mapping[str, Any], count: object) -> list[Step | Notice]:
        figures = {str(name): float(number) for name, number in stats.items() if type(number) in (int, float)}
        if not self._batch_size or not isinstance(count, int) or not 0 <= count < _MOST_STEPS or not figures:
            return []
        number = count // self._batch_size
        samples_per_s = figures.get("throughput", 0.0)
        time_s = figures.pop("train_step_time", self._batch_size / samples_per_s if samples_per_s > 0 else None)
        loss = figures.pop("reduced_train_loss", None)
        mean_of, self._last = max(1, number - self._last), number
        return [Step(step=number, time_s=time_s, loss=loss, figures=figures, mean_of=mean_of)]


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
