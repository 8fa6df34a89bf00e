"""Recording graded logs as runs, so that they are listed, compared and reported like any other run."""

import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import tomli_w

from llmb.analysis.metrics import Metrics
from llmb.analysis.verdict import Judgement
from llmb.judging.graded_run import GradedRun
from llmb.logs.failures.commands_in_remedies import COMMAND, fill_commands, names_of_logs
from llmb.parsing.compressed import unpacked, unpacked_name
from llmb.parsing.parse_log import ParsedLog
from llmb.paths import runs_folder
from llmb.plugins.registry import PluginRegistry
from llmb.records.log_copies.mask_secrets import SecretMask, known_secrets
from llmb.records.record import RunRecord, stamp
from llmb.records.record_files import OTHER_HOME
from llmb.records.result import RunResult
from llmb.spec.spec_of_run import export_imported_run
from llmb.state_machine.events import Ended, Event, JobEnded
from llmb.values.errors import RecordError
from llmb.values.failure import Failure
from llmb.values.job_status import JobStatus
from llmb.values.recipe import Point, Window
from llmb.version import VERSION

BLOCK_BYTES = 1 << 20


@attrs.frozen(kw_only=True)
class RecordedGrade:
    """A graded run as it is recorded. ``completed`` is False if it failed, or its log ends too early."""

    run: GradedRun
    completed: bool
    judgement: Judgement
    metrics: Metrics | None
    notes: tuple[str, ...]


def spec_tables(address: str, point: Point, steps: int, window: Window, tolerance: float) -> dict[str, Any]:
    """Return the spec of a run that was graded so, without a target."""
    workload = {"recipe": address, "gpu_type": point.gpu_type, "dtype": point.dtype, "gpus": point.gpus}
    return {
        "workload": {**workload, "steps": steps, **({"variant": point.variant} if point.variant else {})},
        "measure": {"tolerance": tolerance, "window": window if window == "last" else list(window)},
    }


def save_runs(
    logs: Sequence[RecordedGrade], tables: Mapping[str, Any], registry: PluginRegistry, steps_requested: int | None
) -> tuple[str, ...]:
    """Record each log as a run of this spec, all as repeats of one run. Return the run ids. Raise RecordError.

    ``steps_requested`` is the number of steps that the user named, if any.
    """
    mask = SecretMask(known_secrets(()))
    run_ids: list[str] = []
    for repeat, each in enumerate(logs, start=1):
        provenance = {
            "llmb": VERSION,
            "created": datetime.now(UTC).isoformat(timespec="microseconds"),
            "imported": [str(path.absolute()) for path in each.run.log.paths],
            "logs": _copy_names(each.run.log.paths),
            **({"steps_asked": steps_requested} if steps_requested else {}),
            **({"repeats": len(logs)} if len(logs) > 1 else {}),
        }
        run_id, spec, files = export_imported_run(tables, provenance, repeat, registry)
        run_ids.append(run_id)
        if len(logs) > 1:
            spec["provenance"]["first_repeat"] = run_ids[0]
        _write_record(RunRecord(runs_folder() / run_id, files=files), spec, each, mask)
    return tuple(run_ids)


def _write_record(record: RunRecord, spec: Mapping[str, Any], graded: RecordedGrade, mask: SecretMask) -> None:
    """Write a record whose run is over. Its run.toml comes last, so that no killed import is taken for a new run."""
    try:
        record.logs.mkdir(parents=True)
    except OSError as error:
        raise RecordError(f"{record.directory} cannot be created: {error.strerror}; {OTHER_HOME}") from error
    for path, name in zip(graded.run.log.paths, spec["provenance"]["logs"], strict=True):
        _copy_log(record, path, name, mask)
    result = _result(record, spec, graded, mask)
    record.write_result(result.as_dict(), graded.run.log.steps)
    cause: Any = "completed" if graded.completed else "failed"
    events: list[Event] = [
        JobEnded(run_id=record.run_id, status=JobStatus(state="ended", cause=cause)),
        Ended(run_id=record.run_id, state=result.state, reason=result.reason, verdict=result.verdict),
    ]
    job = f"# this run was imported from {', '.join(spec['provenance']['imported'])}\n"
    record.create(tomli_w.dumps(spec), job, more_events=[stamp(event) for event in events])


def _result(record: RunRecord, spec: Mapping[str, Any], graded: RecordedGrade, mask: SecretMask) -> RunResult:
    if failure := graded.run.log.failure:
        cause, evidence = mask.mask_text(failure.cause), mask.mask_text(failure.evidence)
        failure = _with_copies(attrs.evolve(failure, cause=cause, evidence=evidence), graded.run.log, record)
    return attrs.evolve(
        RunResult.from_dict(
            {"run_id": record.run_id, "directory": str(record.directory), **spec["workload"]}
            | {key: value for key, value in spec["provenance"].items() if key == "recipe"}
        ),
        state="completed" if graded.completed else "failed",
        metrics=graded.metrics,
        verdict=graded.judgement.verdict,
        reason=mask.mask_text(_describe_result(graded)),
        failure=failure,
        notes=tuple(mask.mask_text(note) for note in graded.notes),
        steps_done=graded.run.log.series.count,
        window_complete=graded.run.measured_over == "window",
        interval=graded.judgement.interval,
        window=graded.run.window,
        steady_state=graded.run.log.steady_state,
    )


def _describe_result(graded: RecordedGrade) -> str:
    """Return the reason of the verdict. Without a verdict, return why the run did not complete, if it did not."""
    log, judgement = graded.run.log, graded.judgement
    if graded.completed or judgement.verdict or not log.steps or not log.reason:
        return judgement.reason
    return graded.run.early_end or f"the run did not complete: {log.reason}"


def _with_copies(failure: Failure, log: ParsedLog, record: RunRecord) -> Failure:
    """Return the failure with the copies in the record, instead of the graded logs, in the commands of its remedy."""
    copies = shlex.quote(str(record.logs))
    graded = names_of_logs(log.framework, {path: path for path in log.paths}).get("LOGS", "LOGS")
    word = re.compile(rf"(?<=\s){re.escape(graded)}(?![^\s`])")
    remedy = COMMAND.sub(lambda command: word.sub(lambda _: copies, command[0], count=1), failure.remedy)
    return fill_commands(attrs.evolve(failure, remedy=remedy), {"LOGS": copies, "RUN": record.run_id})


def imported_logs(record: RunRecord) -> list[Path]:
    """Return the copies of the logs of an imported run, in the order in which they were graded. Raise RecordError."""
    names = record.spec()["provenance"].get("logs")
    return [record.logs / name for name in names] if names else sorted(record.logs.glob("*"))


def _copy_names(paths: Sequence[Path]) -> list[str]:
    """Return the name of each log's copy. Logs of the same name are numbered."""
    names: list[str] = []
    for path in paths:
        name = unique = unpacked_name(path)
        number = len(names)
        while unique in names:
            unique = f"{number}.{name}"
            number += 1
        names.append(unique)
    return names


def _copy_log(record: RunRecord, path: Path, name: str, mask: SecretMask) -> None:
    """Copy a log into the record, unpacked and with its secrets masked. Raise LogError if the log is damaged."""
    with unpacked(path) as plain, open(plain, "rb") as file:
        rest = b""
        while block := file.read(BLOCK_BYTES):
            masked = mask.mask(rest + block)
            rest = (rest + block)[len(masked) :]
            record.append_log(name, masked)
        record.append_log(name, mask.mask(rest, is_last=True))
