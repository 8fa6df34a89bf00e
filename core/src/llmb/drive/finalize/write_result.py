"""The result of a run whose job is over: its true state, metrics, verdict and cause of failure."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

from llmb.analysis.impossible_step_times import explain_impossible_step_time, high_mfu_note
from llmb.analysis.measuring_window import is_measured
from llmb.analysis.metrics import Metrics
from llmb.analysis.run_ending import Ending, determine_ending
from llmb.analysis.slow_ranks import RankComparison, compare_ranks, explain_missing_times
from llmb.analysis.verdict import Judgement
from llmb.drive.finalize.attempt_history import list_attempts
from llmb.drive.finalize.attempts_and_telemetry import add_attempts_and_telemetry
from llmb.drive.finalize.measure_and_judge import measure_and_judge
from llmb.drive.finalize.remedy_of_run import fill_remedy
from llmb.drive.hung_jobs import add_last_pause, find_last_pause_s
from llmb.logs.failures.choose_cause import diagnose, last_exception
from llmb.logs.failures.failure_evidence import log_tail
from llmb.logs.failures.scheduler_endings import signatures_of_endings
from llmb.logs.failures.signature_files import known_failure
from llmb.logs.rank_in_file_name import processes_of_logs
from llmb.plan_runs import RunPlan
from llmb.plugins.find_peak_flops import find_peak_flops
from llmb.plugins.registry import PluginRegistry
from llmb.records.log_copies.copy_and_parse_logs import LogCopies
from llmb.records.provenance import find_other_gpus
from llmb.records.record import RunRecord
from llmb.records.result import RunResult, read_result
from llmb.scripts.job_functions import read_failed_process
from llmb.state_machine.events import Ended
from llmb.values.causes import Cause
from llmb.values.failure import UNKNOWN, Failure
from llmb.values.job_history import Attempt, JobHistory
from llmb.values.job_status import JobStatus
from llmb.values.model import proxy_note
from llmb.values.run import Run
from llmb.values.steps import Step

UNEXPLAINED: frozenset[Cause] = frozenset({"failed", "completed"})
"""Causes of an unsuccessful end that explain nothing."""

EXPLAINED: frozenset[Cause] = frozenset({"preempted", "node failure", "deadline"})
"""Causes for which processes lose each other, receive signals and crash. Only an independent error replaces them."""


@attrs.frozen(kw_only=True)
class EndedJob:
    """Last status and history of a job that is over. ``recorded`` is the content of the job's own file of attempts."""

    status: JobStatus
    history: JobHistory
    recorded: bytes


def write_result(plan: RunPlan, record: RunRecord, logs: LogCopies, job: EndedJob, registry: PluginRegistry) -> Ended:
    """Write the steps and the result of a run whose logs are complete. Return its last event.

    Repeating the call after a kill writes the same files. Only the pause of a run that hung is unknown after a kill
    between the removal of its progress and the record of its end.
    """
    run = plan.run
    logs.close()
    ending = _determine_ending(plan, logs, job, registry)
    attempts = list_attempts(record.events(), job.recorded, job.history, ending.cause)
    if ending.state == "timeout" and (pause_s := find_last_pause_s(plan, record, logs, attempts)):
        ending = add_last_pause(ending, pause_s)
    completed = ending.state == "completed"
    steps = logs.series.steps
    peak = find_peak_flops(run, plan.target, registry) if steps else None
    other_gpus = find_other_gpus(record, run)
    measured = measure_and_judge(run, logs.series, peak, completed=completed, other_gpus=other_gpus)
    metrics, judgement = measured.metrics, measured.judgement
    failure = None if completed else _find_failure(plan, logs, ending, job, registry)
    proxy = proxy_note(run.architecture, run.published_architecture)
    warnings = _find_warnings(run, metrics, judgement, other_gpus)
    notes = (proxy, ending.reason if completed else "", *warnings)
    result = attrs.evolve(
        read_result(record),
        state=ending.state,
        metrics=metrics,
        verdict=judgement.verdict,
        reason=judgement.reason if completed else ending.reason,
        failure=fill_remedy(failure, plan, record, logs.series.count) if failure else None,
        notes=tuple(filter(None, notes)),
        refused=ending.cause == "refused",
        steps_done=logs.series.count,
        window_complete=measured.summary.complete,
        interval=judgement.interval,
        window=measured.window,
        steady_state=measured.steady_state,
        progress=None,
    )
    result = add_attempts_and_telemetry(result, run, logs, job.history, attempts, cause=ending.cause)
    result = _add_rank_times(result, plan, logs, registry)
    record.write_result(result.as_dict(), steps)
    return Ended(
        run_id=run.id,
        state=ending.state,
        reason=result.reason,
        verdict=result.verdict,
        cause="" if completed else ending.cause,
        remedy=result.failure.remedy if result.failure else "",
    )


def _find_warnings(run: Run[Any], metrics: Metrics | None, judgement: Judgement, other_gpus: str) -> tuple[str, str]:
    """Return the warnings of other GPUs and of an impossible MFU, each "" if it is wrong or the verdict states it."""
    reasons = (other_gpus, explain_impossible_step_time(metrics))
    is_stated = any(reasons) and judgement.reason in reasons
    wrong_type = f"warning: {other_gpus}" if other_gpus and judgement.reason != other_gpus else ""
    return wrong_type, "" if is_stated else high_mfu_note(run, metrics)


def _add_rank_times(result: RunResult, plan: RunPlan, logs: LogCopies, registry: PluginRegistry) -> RunResult:
    """Add the comparison of the ranks' step times, or a note on the setting that enables them."""
    run = plan.run
    ranks = _compare_ranks(plan, logs, result.attempts)
    setting = registry.framework(run.framework).rank_times_setting if result.window else ""
    missing = explain_missing_times(ranks, run.gpus, result.verdict, setting)
    return attrs.evolve(result, rank_times=ranks, notes=(*result.notes, *filter(None, [missing])))


def _compare_ranks(plan: RunPlan, logs: LogCopies, attempts: Sequence[Attempt]) -> RankComparison | None:
    """Return the comparison of the step times of all processes, which fill the nodes of the last attempt in order."""
    nodes = attempts[-1].nodes if attempts else ()
    per_node = 1 if _are_launchers(plan, "") else plan.job.tasks_per_node
    hosts = {rank: nodes[rank // per_node] for rank in range(len(nodes) * per_node)}
    return compare_ranks(logs.rank_steps.by_process((log.copy for log in logs.files), hosts))


def _determine_ending(plan: RunPlan, logs: LogCopies, job: EndedJob, registry: PluginRegistry) -> Ending:
    status, remedy = job.status, job.status.remedy
    if status.reason and not remedy:
        known = known_failure(status.reason, registry.signatures(plan.run.framework))
        remedy = known.remedy if known else ""
    if status.cause == "refused" and not remedy:
        remedy = _stated_remedy(status.reason)
    return determine_ending(
        attrs.evolve(status, remedy=remedy),
        steps_done=logs.series.count,
        steps_requested=plan.run.steps,
        only_exit_left=_only_exit_left(plan, logs.series.steps),
        missing_end=logs.series.missing_end,
        nan=logs.series.nan,
        messages={notice.kind for notice in logs.scheduler_notices},
        parser_error=logs.parser_error,
        cancelled_by=job.history.cancelled_by,
    )


def _stated_remedy(reason: str) -> str:
    """Return the command at the end of an error about a lock on the host, such as ``run `rm LOCK` there``, or ""."""
    end = reason.rpartition("; ")[2]
    return f"{end.removesuffix(' there')} on the host" if end.startswith("run `") and end.endswith("` there") else ""


def _only_exit_left(plan: RunPlan, steps: Sequence[Step]) -> bool:
    """Check whether the last step was measured, and the job has no further phase or output to complete."""
    last_phase = plan.job.phases[-1]
    return last_phase.measured and not last_phase.outputs and bool(steps) and is_measured(steps[-1], steps)


def _find_failure(plan: RunPlan, logs: LogCopies, ending: Ending, job: EndedJob, registry: PluginRegistry) -> Failure:
    """Return the cause found in the logs, else the scheduler's, with the end of the failed rank's log as evidence.

    If the scheduler reported no reason either, the cause is unknown.
    """
    reported = job.status.reason
    known = known_failure(reported, registry.signatures(plan.run.framework)) if ending.cause == "refused" else None
    stated = Failure(cause=ending.reason, origin=(known and known.origin) or ending.origin, remedy=ending.remedy)
    if not ending.search_logs:
        return stated
    found = _search_logs(plan, logs, ending, registry)
    own_logs: list[Path] = []
    if failed := read_failed_process(reported):
        rank = (found.rank if found else None) if _are_launchers(plan, failed.phase) else failed.number
        stated = attrs.evolve(stated, rank=rank, host=failed.host)
        own_logs = _logs_of_process(logs, failed.number)
        if found and found.cause.startswith(UNKNOWN):  # the job reports more
            found = None
        elif found and found.rank in (None, rank):
            found = attrs.evolve(found, rank=rank, host=found.host or failed.host)
    if found is None and ending.cause in UNEXPLAINED and not reported:
        return attrs.evolve(stated, cause=f"{UNKNOWN}: {ending.reason}", evidence=log_tail(logs.copies))
    return found or attrs.evolve(stated, evidence=log_tail(own_logs) or log_tail(logs.copies))


def _are_launchers(plan: RunPlan, phase: str) -> bool:
    """Check whether a phase runs once on each node, so that its processes start the ranks: their numbers are no ranks.

    Without the name of a phase, the measured phases count.
    """
    found = [each for each in plan.job.phases if (each.name == phase if phase else each.measured)]
    return all(each.ranks == "node" for each in found)


def _logs_of_process(logs: LogCopies, number: int) -> list[Path]:
    """Return the copies of the process's own logs, if each process of a phase has one. The last phase is the first."""
    phases = {log.copy: log.phase for log in logs.files}
    groups = [processes_of_logs(copies) for _, copies in groupby(logs.copies, lambda copy: phases[copy.name])]
    return [copy for group in groups for copy, process in group.items() if process.rank == number]


def _search_logs(plan: RunPlan, logs: LogCopies, ending: Ending, registry: PluginRegistry) -> Failure | None:
    """Return the cause that the logs contain. If nothing else explains the end, the last exception is the cause."""
    known, starts = registry.signatures(plan.run.framework), logs.superseded_until()
    if ending.cause in EXPLAINED:
        return diagnose(logs.copies, known, starts, warnings=False, secondary=False)
    if ending.hung:
        endings = [*signatures_of_endings(logs.scheduler_notices)]
        found = diagnose(logs.copies, known, starts, endings=endings)
        return None if found and found.cause in {each.cause for each in endings} else found
    if (found := diagnose(logs.copies, known, starts)) or ending.cause not in UNEXPLAINED:
        return found
    exception = last_exception(logs.copies, known, starts)
    return None if exception and exception.cause.startswith(UNKNOWN) else exception
