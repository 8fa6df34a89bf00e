"""The result of a run, as its record describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import attrs

from llmb.analysis.measuring_window import MeasuredWindow
from llmb.analysis.metrics import Comparison, Metrics
from llmb.analysis.steady_state import Spike, SteadyState
from llmb.drive.find_records import find_record
from llmb.drive.record import RunRecord
from llmb.drive.unit_state import State
from llmb.values.errors import RecordError
from llmb.values.failure import Failure
from llmb.values.frozen import FrozenMap, freeze
from llmb.values.job_status import END_STATES, RunState, Verdict
from llmb.values.typed import encode

T = TypeVar("T")

RESULT_KEYS = (
    *("metrics", "verdict", "reason", "failure", "notes", "refused", "steps_done", "window_complete"),
    *("interval", "window", "steady_state"),
)
"""Keys that only ``result.json`` has."""


def _freeze_sweep(value: Any) -> FrozenMap[str, Any]:
    return FrozenMap(freeze(value) if isinstance(value, Mapping) else {})


def _freeze_notes(value: Any) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list | tuple) else ()


def _default_to_one(value: Any) -> int:
    return value if isinstance(value, int) else 1


@attrs.frozen(kw_only=True)
class RunResult:
    """State and result of one run. The fields are the keys of ``llmb run --json``; unknown values are None.

    ``notes`` are warnings about the result. ``directory`` is the record on this machine, ``created`` an ISO 8601
    time in UTC. ``refused`` is True if the scheduler rejected the job. Values of the spec are None if the record's copy
    of the spec is damaged. ``sweep`` maps the dotted keys that the spec has as lists to this run's values, and this is
    run number ``repeat`` of ``repeats`` with these values, of which ``first_repeat`` is the first. ``steps`` were
    requested, ``steps_done`` were seen. If ``window_complete`` is False, the metrics cover only a part of the measuring
    window. ``interval`` is the step time ratio minus and plus its margin, if the verdict is based on the step time.
    """

    run_id: str
    state: RunState
    recipe: str | None
    gpu_type: str | None
    dtype: str | None
    gpus: int | None
    variant: str | None
    job_id: str | None
    directory: str
    metrics: Metrics | None
    verdict: Verdict | None
    reason: str
    failure: Failure | None
    notes: tuple[str, ...] = attrs.field(default=(), converter=_freeze_notes)
    refused: bool
    created: str | None
    sweep: Mapping[str, Any] = attrs.field(factory=FrozenMap, converter=_freeze_sweep)
    repeat: int = attrs.field(default=1, converter=_default_to_one)
    repeats: int = attrs.field(default=1, converter=_default_to_one)
    steps: int | None = None
    steps_done: int | None = None
    window_complete: bool | None = None
    interval: tuple[float, float] | None = None
    window: MeasuredWindow | None = None
    steady_state: SteadyState | None = None
    tolerance: float | None = None
    first_repeat: str | None = None

    @property
    def ended(self) -> bool:
        """True if the state is final."""
        return self.state in END_STATES

    def as_dict(self) -> dict[str, Any]:
        """Return the object that ``llmb run --json`` prints."""
        return attrs.asdict(self, recurse=False) | {
            "metrics": self.metrics.as_dict() if self.metrics else None,
            "failure": attrs.asdict(self.failure) if self.failure else None,
            "window": attrs.asdict(self.window) if self.window else None,
            "steady_state": attrs.asdict(self.steady_state) if self.steady_state else None,
            "notes": list(self.notes),
            "sweep": encode(self.sweep),
        }

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> RunResult:
        """Return the run that `as_dict` of this or another version described. Missing keys are None."""
        metrics, steady = table.get("metrics") or {}, table.get("steady_state") or {}
        spikes = tuple(Spike(**spike) for spike in steady.get("spikes", ()))
        interval = table.get("interval")
        return cls(
            **{field.name: table.get(field.name) for field in attrs.fields(cls)}
            | {
                "metrics": _build(Metrics, metrics | {"baseline": _build(Comparison, metrics.get("baseline"))}),
                "failure": _build(Failure, table.get("failure")),
                "window": _build(MeasuredWindow, table.get("window")),
                "steady_state": _build(SteadyState, steady | {"spikes": spikes}) if steady else None,
                "interval": (interval[0], interval[1]) if interval else None,
                "reason": table.get("reason") or "",
                "refused": bool(table.get("refused")),
            }
        )


def _build(cls: type[T], table: Mapping[str, Any] | None) -> T | None:
    if not table or not any(value is not None for value in table.values()):
        return None
    return cls(**{field.name: table.get(field.name) for field in attrs.fields(cast("Any", cls))})


def find_run(wanted: str) -> RunResult:
    """Return the run of this id or unique prefix. Raise RecordError."""
    return read_result(find_record(wanted))


def read_result(record: RunRecord) -> RunResult:
    """Return one run as its files describe it. A damaged record is a lost run, with the reason."""
    spec: dict[str, Any] = {}
    state: State | None = None
    try:
        spec = record.spec()
        state = record.state()
        result = record.result() or {}
    except RecordError as error:  # one damaged record does not hide the others
        result = {"reason": str(error)}
    workload, measure, provenance = (_table(spec, name) for name in ("workload", "measure", "provenance"))
    unanswered = state is not None and state.stage == "submitting"
    return RunResult.from_dict(
        {
            **{key: result.get(key) for key in RESULT_KEYS},
            **({"reason": state.reason} if state and unanswered else {}),
            **{key: workload.get(key) for key in ("recipe", "gpu_type", "dtype", "gpus", "variant", "steps")},
            "run_id": record.run_id,
            "state": state.run_state if state else "lost",
            "job_id": state.job_id if state else None,
            "directory": str(record.directory),
            **{key: provenance.get(key) for key in ("created", "sweep", "repeat", "repeats", "first_repeat")},
            "tolerance": measure.get("tolerance"),
        }
    )


def _table(spec: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = spec.get(name)
    return table if isinstance(table, Mapping) else {}
