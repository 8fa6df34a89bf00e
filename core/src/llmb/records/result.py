"""The result of a run, as its record describes it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import attrs

from llmb.analysis.goodput import WallTime
from llmb.analysis.measuring_window import MeasuredWindow
from llmb.analysis.metrics import Comparison, Metrics
from llmb.analysis.power_and_throttling import Telemetry
from llmb.analysis.slow_ranks import RankComparison
from llmb.analysis.steady_state import SteadyState
from llmb.files import is_locked
from llmb.logs.steps.steps_csv import StepColumns, read_steps_csv
from llmb.records.find_record_by_id import find_record
from llmb.records.last_progress import RunProgress, read_progress
from llmb.records.record import RunRecord
from llmb.records.record_files import read_file
from llmb.state_machine.apply_events import replay
from llmb.state_machine.events import Event
from llmb.state_machine.units import State
from llmb.values.errors import Fault, RecordError
from llmb.values.failure import Failure
from llmb.values.frozen import FrozenMap, table_of
from llmb.values.job_history import Attempt
from llmb.values.run_states import END_STATES, RunState, Verdict
from llmb.values.texts.html_table import html_values
from llmb.values.types.check_arguments import check_arguments
from llmb.values.types.check_types import decode_fields, encode

RESULT_KEYS = (
    *("metrics", "verdict", "reason", "failure", "notes", "refused", "steps_done", "window_complete"),
    *("interval", "window", "steady_state", "attempts", "goodput", "wall_time", "telemetry", "rank_times"),
)
"""Keys that only ``result.json`` has."""

STEPS_FILE = "steps.csv"

DAMAGED = "damaged record"
"""The beginning of the reason of a run whose record has invalid values."""

STEPS_KEY = "steps"
"""The key of ``steps_requested`` in JSON."""


@attrs.frozen(kw_only=True)
class RunResult:
    """State and result of one run. The fields are the keys of ``llmb run --json``; unknown values are None.

    ``notes`` are warnings about the result. ``directory`` is the record on this machine, ``created`` an ISO 8601
    time in UTC. ``refused`` is True if the scheduler rejected the job. Values of the spec are None if the record's copy
    of the spec is damaged. ``sweep`` maps the dotted keys that the spec has as lists to this run's values, and this is
    run number ``repeat`` of ``repeats`` with these values, of which ``first_repeat`` is the first. Of
    ``steps_requested``, ``steps_done`` were seen. If ``window_complete`` is False, the metrics cover only a part of the
    measuring window. ``interval`` is the step time ratio minus and plus its margin, if the verdict is based on the step
    time. ``goodput`` is the share of ``wall_time`` that was spent in productive steps. ``rank_times`` is None if the
    logs do not contain the step times of several ranks. ``imported`` is True if the run was recorded from existing
    logs. ``updated`` is the time of the last event or step that llmb saw. ``progress`` is what llmb knew of a
    running job at that time.
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
    notes: tuple[str, ...] = ()
    refused: bool
    created: str | None
    sweep: Mapping[str, Any] = FrozenMap()
    repeat: int = 1
    repeats: int = 1
    steps_requested: int | None = None
    steps_done: int | None = None
    window_complete: bool | None = None
    interval: tuple[float, float] | None = None
    window: MeasuredWindow | None = None
    steady_state: SteadyState | None = None
    tolerance: float | None = None
    first_repeat: str | None = None
    attempts: tuple[Attempt, ...] = ()
    goodput: float | None = None
    wall_time: WallTime | None = None
    telemetry: Telemetry | None = None
    rank_times: RankComparison | None = None
    imported: bool = False
    updated: str | None = None
    progress: RunProgress | None = None

    @property
    def ended(self) -> bool:
        """True if the state is final."""
        return self.state in END_STATES

    @property
    def followed(self) -> bool | None:
        """True if a process follows the run. None if that is unknown."""
        with suppress(OSError):
            return is_locked(Path(self.directory) / "lock")
        return None

    @property
    def steps(self) -> StepColumns:
        """The steps as columns of equal length, for ``pandas.DataFrame(result.steps)`` or polars.

        Read from the record each time, and empty until the run has ended. Raise RecordError for a damaged file.
        """
        directory = Path(self.directory)
        text = read_steps_text(directory)
        try:
            return read_steps_csv(text) if text else {}
        except ValueError as error:
            raise RecordError(f"{directory / STEPS_FILE} is damaged: {error}") from error

    def _repr_html_(self) -> str:
        """Return state, verdict, metrics and cause as a table, for a notebook."""
        rows: list[tuple[str, object]] = [("state", self.state), ("verdict", self.verdict), ("reason", self.reason)]
        rows += self.metrics.rows() if self.metrics else []
        rows += [("cause", self.failure.cause), ("remedy", self.failure.remedy)] if self.failure else []
        return html_values(self.run_id, rows)

    def as_dict(self) -> dict[str, Any]:
        """Return the object that ``llmb run --json`` prints."""
        table = attrs.asdict(self) | {
            "metrics": self.metrics.as_dict() if self.metrics else None,
            "notes": list(self.notes),
            "attempts": [attrs.asdict(each) | {"nodes": list(each.nodes)} for each in self.attempts],
            "sweep": encode(self.sweep),
        }
        return {STEPS_KEY if name == "steps_requested" else name: value for name, value in table.items()}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> RunResult:
        """Return the run that `as_dict` of this or another version described.

        Missing keys are None. So are those with invalid values, which the reason then names.
        """
        nested = {name: _nested(kind, table.get(name)) for name, kind in NESTED.items()}
        values, errors = _known_values(cls, {**table, **nested, "steps_requested": table.get(STEPS_KEY)})
        damage = f"{DAMAGED}: {errors[0]}" if errors else ""
        unknown: dict[str, Any] = {each.name: None for each in attrs.fields(cls) if each.default is attrs.NOTHING}
        values["reason"] = values.get("reason") or damage
        return cls(**unknown | {"refused": False} | values)


NESTED: Mapping[str, type] = {
    "metrics": Metrics,
    "failure": Failure,
    "window": MeasuredWindow,
    "steady_state": SteadyState,
    "wall_time": WallTime,
    "telemetry": Telemetry,
    "rank_times": RankComparison,
    "progress": RunProgress,
    "baseline": Comparison,
}
"""The keys whose values are tables, each with its class."""


def _nested(cls: type, table: Any) -> Any:
    """Return the attrs value of a table, None if the table is empty, or the table itself if a value is wrong."""
    if not isinstance(table, Mapping):
        return table
    if all(value is None for value in table.values()):
        return None
    inner = {name: _nested(kind, table[name]) for name, kind in NESTED.items() if name in table}
    values, errors = _known_values(cls, {**table, **inner})
    return table if errors else cls(**{field.name: None for field in attrs.fields(cls)} | values)


def _known_values(cls: type, table: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """Return the valid values of the class's fields in a table, and the errors of the others."""
    names = (field.name for field in attrs.fields(cast("Any", cls)))
    known = {name: table[name] for name in names if table.get(name) is not None}
    return decode_fields(known, cls, "", required=False)


@check_arguments
def read_steps_text(directory: str | Path) -> str:
    """Return the CSV of the steps of a run, "" before there is a result. Raise RecordError for a damaged file.

    ``directory`` is that of the record: `RunResult.directory`.
    """
    file = Path(directory) / STEPS_FILE
    try:
        return (read_file(file) or b"").decode()
    except ValueError as error:
        raise RecordError(f"{file} is damaged: {error}") from error


@check_arguments
def find_run(run_id: str) -> RunResult:
    """Return the run of this id or unique prefix. Raise RecordError."""
    return read_result(find_record(run_id))


def read_result(record: RunRecord) -> RunResult:
    """Return one run as its files describe it. A damaged record is a lost run, with the reason."""
    spec: dict[str, Any] = {}
    events: list[Event] = []
    state: State | None = None
    try:
        spec = record.spec()
        events = record.events()
        state = replay(events)
        result = _read_result_file(record, state) or {}
    except RecordError as error:  # one damaged record does not hide the others
        result = {"reason": str(error)}
    workload, measure, provenance = (table_of(spec, name) for name in ("workload", "measure", "provenance"))
    running = state if state and state.run_state == "running" else None
    progress, progress_time = read_progress(record, running.attempt) if running else (None, 0.0)
    updated_s = max([progress_time, *(event.time for event in events)])
    return RunResult.from_dict(
        {
            **{key: result.get(key) for key in RESULT_KEYS},
            "reason": state.reason if state and state.stage == "submitting" else result.get("reason"),
            **{key: workload.get(key) for key in ("gpu_type", "dtype", "gpus", "variant")},
            "recipe": provenance.get("recipe") or workload.get("recipe"),
            STEPS_KEY: workload.get("steps"),
            "run_id": record.run_id,
            "state": state.run_state if state else "lost",
            "job_id": state.job_id if state else None,
            "directory": str(record.directory),
            **{key: provenance.get(key) for key in ("created", "sweep", "repeat", "repeats", "first_repeat")},
            "tolerance": measure.get("tolerance"),
            "imported": bool(provenance.get("imported")),
            "updated": result.get("updated") or _as_text(updated_s),
            "progress": attrs.asdict(progress) if progress else None,
        }
    )


def _read_result_file(record: RunRecord, state: State) -> dict[str, Any] | None:
    """Return the result, or None before the run has ended. Raise RecordError for a damaged or lost file."""
    found = record.result()
    if found is None and state.run_state in END_STATES:
        raise RecordError(f"{record.directory / 'result.json'} is missing")
    return found


def _as_text(time_s: float) -> str | None:
    """Return a time in seconds since 1970 as ISO 8601, or None if it is 0 or impossible."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(time_s, UTC).isoformat() if time_s else None
    return None
