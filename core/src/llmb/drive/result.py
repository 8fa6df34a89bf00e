"""How a run stands or ended, as its record tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import attrs

from llmb.analysis.metrics import Comparison, Metrics
from llmb.drive.record import RunRecord, find_record
from llmb.values.errors import RecordError
from llmb.values.failure import Failure
from llmb.values.frozen import FrozenMap, freeze, thaw
from llmb.values.job_status import END_STATES, RunState, Verdict

T = TypeVar("T")

OF_ITS_END = ("metrics", "verdict", "reason", "failure", "refused", "steps_done", "window_complete")
"""What a record's result alone tells."""


def _as_sweep(value: Any) -> FrozenMap[str, Any]:
    return FrozenMap(freeze(value) if isinstance(value, Mapping) else {})


def _as_count(value: Any) -> int:
    return value if isinstance(value, int) else 1


@attrs.frozen(kw_only=True)
class RunResult:
    """One run. Its fields are the keys of ``llmb run --json``; what is not known (yet) is null.

    ``directory`` is its record on this machine, ``created`` a time as ISO 8601 has it, in UTC; ``refused`` tells a run
    that the scheduler did not take from others that failed. What the spec states is null where the record's copy of it
    cannot be read. ``sweep`` are the dotted keys that the spec has as lists, each with this run's value; it is the
    run number ``repeat`` of ``repeats`` with these values. ``steps`` were asked for and ``steps_done`` seen at its end;
    where ``window_complete`` is false, the metrics are of a part of what was to be measured, or of no step of it.
    """

    run_id: str
    state: RunState
    recipe: str | None
    gpu_type: str | None
    dtype: str | None
    gpus: int | None
    job_id: str | None
    directory: str
    metrics: Metrics | None
    verdict: Verdict | None
    reason: str
    failure: Failure | None
    refused: bool
    created: str | None
    sweep: Mapping[str, Any] = attrs.field(factory=FrozenMap, converter=_as_sweep)
    repeat: int = attrs.field(default=1, converter=_as_count)
    repeats: int = attrs.field(default=1, converter=_as_count)
    steps: int | None = None
    steps_done: int | None = None
    window_complete: bool | None = None

    @property
    def ended(self) -> bool:
        """Whether its state is final."""
        return self.state in END_STATES

    def as_dict(self) -> dict[str, Any]:
        """As ``llmb run --json`` prints it."""
        return attrs.asdict(self, recurse=False) | {
            "metrics": self.metrics.as_dict() if self.metrics else None,
            "failure": attrs.asdict(self.failure) if self.failure else None,
            "sweep": thaw(self.sweep),
        }

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> RunResult:
        """What `as_dict` gave, perhaps that of another version: keys that are not there are null."""
        metrics = table.get("metrics") or {}
        return cls(
            **{field.name: table.get(field.name) for field in attrs.fields(cls)}
            | {
                "metrics": _made(Metrics, metrics | {"baseline": _made(Comparison, metrics.get("baseline"))}),
                "failure": _made(Failure, table.get("failure")),
                "reason": table.get("reason") or "",
                "refused": bool(table.get("refused")),
            }
        )


def _made(cls: type[T], table: Mapping[str, Any] | None) -> T | None:
    if not table or not any(value is not None for value in table.values()):
        return None
    return cls(**{field.name: table.get(field.name) for field in attrs.fields(cast("Any", cls))})


def find_run(wanted: str) -> RunResult:
    """The run of this id, or of a unique prefix of one. Raises RecordError."""
    return read_result(find_record(wanted))


def read_result(record: RunRecord) -> RunResult:
    """One run as its files tell it. A record that is damaged is a run that is lost, with the reason."""
    spec: dict[str, Any] = {}
    state: dict[str, Any] = {"state": "lost"}
    try:
        spec = record.spec()
        state = record.state()
        result = record.result() or {}
    except RecordError as error:  # the list of all runs is not lost with one of them
        result = {"reason": str(error)}
    workload, provenance = (_table(spec, name) for name in ("workload", "provenance"))
    return RunResult.from_dict(
        {
            **{key: result.get(key) for key in OF_ITS_END},
            **({"reason": state.get("unanswered")} if state["state"] == "submitting" else {}),
            **{key: workload.get(key) for key in ("recipe", "gpu_type", "dtype", "gpus", "steps")},
            "run_id": record.run_id,
            "state": state["state"],
            "job_id": state.get("job_id"),
            "directory": str(record.directory),
            **{key: provenance.get(key) for key in ("created", "sweep", "repeat", "repeats")},
        }
    )


def _table(spec: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = spec.get(name)
    return table if isinstance(table, Mapping) else {}
