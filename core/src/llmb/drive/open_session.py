"""The session of started or attached runs, and the runs as a session drives them."""

import resource
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from llmb.drive.driven_run import DrivenRun
from llmb.drive.effects import EffectRunner
from llmb.drive.max_jobs import JobLimit
from llmb.drive.session import Session
from llmb.drive.target_group import Groups, group_key
from llmb.drive.target_loop import TargetLoop
from llmb.hosts.host_connections import HostConnections
from llmb.planning import RunPlan
from llmb.plugins.find_peak_flops import find_peak_flops
from llmb.plugins.registry import PluginRegistry
from llmb.records.create_records import SweepRecorder
from llmb.records.log_copies.copy_and_parse_logs import RunLogs
from llmb.records.record import RunRecord
from llmb.values.errors import RecipeError, SpecError, TargetError
from llmb.values.workload import RunSpec

SPARE_FILES = 256
"""Files that this process may need to open besides one lock per run."""


def ignore_activity(activity: str) -> None:
    """Show nothing of what llmb does before runs are followed."""


@contextmanager
def opened(hosts: HostConnections) -> Iterator[HostConnections]:
    """Close the connections if the block fails."""
    try:
        yield hosts
    except BaseException:  # Ctrl-C too
        hosts.close()
        raise


def with_facts(spec: RunSpec, groups: Groups) -> RunSpec:
    """Return the run's spec with the facts that the probe of its target found."""
    group = groups.get(group_key(spec.target))
    target = group.with_facts(spec.target) if group else spec.target
    return spec if target is spec.target else attrs.evolve(spec, target=target)


def driven_run(plan: RunPlan, record: RunRecord, registry: PluginRegistry) -> DrivenRun:
    """Return a run with its record and the readers of its logs."""
    framework, scheduler = registry.framework(plan.run.framework), registry.scheduler(plan.target.scheduler)
    return DrivenRun(plan, record, RunLogs(plan, record, framework, scheduler), _job_limit(plan, record))


def _job_limit(plan: RunPlan, record: RunRecord) -> JobLimit | None:
    if plan.target.max_jobs is None:
        return None
    first_run = str(record.spec().get("provenance", {}).get("first_run", plan.run.id))
    return JobLimit(Path(first_run).name, plan.target.max_jobs)


def open_session(
    records: Sequence[RunRecord],
    runs: Sequence[DrivenRun],
    groups: Groups,
    hosts: HostConnections,
    registry: PluginRegistry,
    notes: list[str],
    *,
    recorder: SweepRecorder | None = None,
    errors: Sequence[Exception] = (),
) -> Session:
    """Return a session that drives the unfinished ``runs`` of each target, with the results of all ``records``.

    ``recorder`` is that of new runs.
    """
    _allow_open_files(len(runs))  # a lock per run
    loops = []
    for key, group in groups.items():
        of_group = [run for run in runs if group_key(run.plan.target) == key]
        for run in of_group:
            run.logs.peak_flops = _peak_or_none(run.plan, registry)
        loops.append(TargetLoop(EffectRunner(group, of_group, registry), recorder))
    return Session(records, loops, hosts, recorder=recorder, notes=notes, errors=errors)


def _allow_open_files(count: int) -> None:
    """Raise this process's limit of open files, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        highest = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))


def check_peaks(plans: Iterable[RunPlan], registry: PluginRegistry) -> None:
    """Raise PluginError if a plugin fails to return the peak of a run: the metrics of its training would need it."""
    for plan in plans:
        with suppress(SpecError, RecipeError, TargetError):  # the hook raises them by contract, perhaps only for now
            find_peak_flops(plan.run, plan.target, registry)


def _peak_or_none(plan: RunPlan, registry: PluginRegistry) -> float | None:
    """Return the peak for the live view. The error of a recorded run is raised when it is finalized, not here."""
    try:
        return find_peak_flops(plan.run, plan.target, registry)
    except Exception:  # noqa: BLE001  # see above
        return None
