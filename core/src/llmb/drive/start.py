"""Starting, attaching to and cancelling runs: what happens before a session drives them."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from llmb.drive.activity import count_runs, describe_probe, ignore_activity
from llmb.drive.effects import DrivenRun, EffectRunner
from llmb.drive.job_slots import JobLimit
from llmb.drive.secrets import require_secrets
from llmb.drive.session import Session, raise_worst
from llmb.drive.target_group import TargetGroup, group_key, group_targets
from llmb.drive.target_loop import TargetLoop
from llmb.drive.task_jobs import tasks_without_secrets
from llmb.hosts.host_connections import HostConnections
from llmb.hosts.work_directory import check_work_directory
from llmb.planning import RunPlan, plan, plan_run
from llmb.plugins.find_peak_flops import peak_flops
from llmb.plugins.registry import PluginRegistry
from llmb.records.create_records import SweepRecorder
from llmb.records.find_records import all_records, find_record
from llmb.records.record import RunRecord, runs_folder
from llmb.records.run_logs import RunLogs
from llmb.spec.export import export_run, import_run
from llmb.spec.run_ids import draw_run_ids
from llmb.values.error_text import exception_text
from llmb.values.errors import Fault, LlmbError, RecordError
from llmb.values.workload import RunSpec, Workload
from llmb.version import VERSION

SPARE_FILES = 256
"""Files that this process may need to open besides one lock per run."""

Groups = dict[tuple[str, ...], TargetGroup]


def start(
    workload: Workload,
    *,
    report_activity: Callable[[str], object] = ignore_activity,
    registry: PluginRegistry | None = None,
) -> Session:
    """Check and record every run of a workload, and return a session that drives them.

    ``report_activity`` is called with what llmb is about to do, such as ``connecting to eos``. ``registry`` may have
    loaded plugins already.

    Raise SpecError with all errors, or TargetError, before anything is recorded. Raise RecordError if recording fails.
    """
    registry = registry or PluginRegistry()
    workload = draw_run_ids(workload)
    report_activity(f"planning {count_runs(workload.runs)}")
    plans: Sequence[RunPlan] = plan(workload.first_repeats, registry=registry)
    require_secrets((each.script, "run") for each in plans)
    with _opened(HostConnections()) as hosts:
        groups = group_targets([attrs.evolve(each.target, images=each.images) for each in plans], registry, hosts)
        notes: list[str] = []
        for group in groups.values():
            report_activity(describe_probe(group))
            notes += group.probe()
        for group in groups.values():
            check_work_directory(group.workdir, group.host, group.name, shared=group.shared)
        report_activity(f"planning {count_runs(workload.runs)}")
        plans = _plan_all(workload, plans, groups, registry)
        for key, group in groups.items():
            report_activity(f"checking what exists on {group.name}")
            tasks = {task.key: task for each in plans if group_key(each.target) == key for task in each.tasks}
            require_secrets((task.script, task.task.kind) for task in tasks_without_secrets(tasks.values(), group))
        notes += dict.fromkeys((*workload.notes, *(note for each in plans for note in each.script.notes)))
        report_activity(f"recording {count_runs(plans)}")
        first_repeats, first_runs = _first_repeat_ids(plans), _first_run_ids(plans)
        records = [
            RunRecord(
                runs_folder() / each.run.id,
                _spec_tables(each, first_repeat, first_run, registry),
                each.spec.recipe_copy.files if each.spec.recipe_copy else {},
            )
            for each, first_repeat, first_run in zip(plans, first_repeats, first_runs, strict=True)
        ]
        runs = [_driven(*each, registry) for each in zip(plans, records, strict=True)]  # errors here record nothing
        recorder = SweepRecorder({run.record: run.plan.script.text for run in runs})
        return _session(runs, groups, hosts, registry, notes, recorder=recorder)


def _plan_all(
    workload: Workload, known: Iterable[RunPlan], groups: Groups, registry: PluginRegistry
) -> Sequence[RunPlan]:
    """Plan the repeats, and plan runs again if a probe found facts: they may rule out a run or change its script."""
    specs = {spec.run.id: _with_facts(spec, groups) for spec in workload.runs}
    plans = {each.run.id: each for each in known if each.target.facts == specs[each.run.id].target.facts}
    missing = tuple(spec for run_id, spec in specs.items() if run_id not in plans)
    plans |= {each.run.id: each for each in plan(attrs.evolve(workload, runs=missing), registry=registry)}
    return [plans[run_id] for run_id in specs]


def _first_repeat_ids(plans: Sequence[RunPlan]) -> list[str]:
    """Return for each run the id of the first of its repeats, which precedes the others."""
    ids: list[str] = []
    for each in plans:
        ids.append(each.run.id if each.run.repeat == 1 else ids[-1])
    return ids


def _first_run_ids(plans: Sequence[RunPlan]) -> list[str]:
    """Return for each run the id of the sweep's first run on the same target."""
    first: dict[tuple[str, ...], str] = {}
    return [first.setdefault(group_key(each.target), each.run.id) for each in plans]


def _spec_tables(each: RunPlan, first_repeat: str, first_run: str, registry: PluginRegistry) -> dict[str, Any]:
    """Return the tables of a new run's run.toml.

    Repeats name the first of them, so that they are judged together. Runs with a ``target.max_jobs`` name the first run
    of their sweep, so that their jobs are counted together.
    """
    wanted = {("framework", each.run.framework), ("scheduler", each.target.scheduler)}
    used = [entry for entry in registry.installed if (entry.kind, entry.name) in wanted or entry.kind == "extension"]
    image = each.run.image
    provenance = {
        "llmb": VERSION,
        "plugins": {entry.distribution: entry.version for entry in used if entry.distribution},
        "created": datetime.now(UTC).isoformat(timespec="microseconds"),
        **({"image_digest": image.digest} if image and image.digest else {}),
        **({"first_repeat": first_repeat} if each.spec.repeats > 1 else {}),
        **({"first_run": first_run} if each.target.max_jobs else {}),
    }
    return export_run(each.spec, provenance)


def attach(
    wanted: Iterable[str] | None = None, *, report_activity: Callable[[str], object] = ignore_activity
) -> Session:
    """Return a session that drives recorded runs, by their ids or unique prefixes; None means all unfinished runs.

    Raise RecordError for a run that does not exist. A run whose spec or plugins are damaged is skipped; if the run was
    named, its error is raised after the other runs are done. ``report_activity`` is that of `start`.
    """
    notes: list[str] = []
    if wanted is None:
        return _attach(_unfinished(notes), notes, report_activity, named=False)
    return _attach(_find_all(wanted), notes, report_activity, named=True)


def cancel(wanted: Iterable[str], *, report_activity: Callable[[str], object] = ignore_activity) -> Session:
    """Request the end of these runs, and return a session that drives them to their end. Raise RecordError.

    The request is recorded before anything else of a run is read, so that whichever process drives the run sees it.
    ``report_activity`` is that of `start`.
    """
    records = _find_all(wanted)
    for record in records:
        if not record.ended:
            record.request_cancel()
    return _attach(records, [], report_activity, named=True)


def _unfinished(notes: list[str]) -> Iterator[RunRecord]:
    for record in all_records():
        with _skip_on_error(record, notes):
            if not record.ended:
                yield record


def _find_all(wanted: Iterable[str]) -> list[RunRecord]:
    if isinstance(wanted, str):
        raise TypeError(f"expected a list of run ids, such as [{wanted!r}]")
    found: dict[str, RunRecord] = {}
    faults: list[Fault] = []
    for each in wanted:
        try:
            record = find_record(each)
            found.setdefault(record.run_id, record)
        except RecordError as error:
            faults += error.faults
    if faults:
        raise RecordError(*dict.fromkeys(faults))
    return list(found.values())


def _attach(
    records: Iterable[RunRecord], notes: list[str], report_activity: Callable[[str], object], *, named: bool
) -> Session:
    report_activity("reading the records")
    registry = PluginRegistry()
    errors: list[Exception] = []
    specs: list[tuple[RunRecord, RunSpec]] = []
    for record in records:
        with _skip_on_error(record, notes, errors if named else None):
            specs.append((record, import_run(record.directory / "run.toml", registry)))
    with _opened(HostConnections()) as hosts:
        groups = group_targets([each.target for record, each in specs if not record.ended], registry, hosts)
        for group in groups.values():
            report_activity(describe_probe(group))
            notes += _probe_or_keep_error(group)
        runs = []
        for record, each in specs:
            with _skip_on_error(record, notes, errors if named else None):
                runs.append(_driven(plan_run(_with_facts(each, groups), registry), record, registry))
        if not runs:
            raise_worst(errors)
        return _session(runs, groups, hosts, registry, notes, errors=errors)


def _probe_or_keep_error(group: TargetGroup) -> Sequence[str]:
    """Probe a group. If it does not respond, keep the error, so that runs of other targets continue."""
    try:
        return group.probe()
    except Exception as error:  # noqa: BLE001  # raised by the loop of this group
        group.error = error
        return ()


@contextmanager
def _opened(hosts: HostConnections) -> Iterator[HostConnections]:
    """Close the connections if the block fails."""
    try:
        yield hosts
    except BaseException:  # Ctrl-C too
        hosts.close()
        raise


@contextmanager
def _skip_on_error(record: RunRecord, notes: list[str], errors: list[Exception] | None = None) -> Iterator[None]:
    """Append an error to ``errors``. Without such a list, append a note that the run is skipped."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # raised after the other runs are done
        if errors is None:
            notes.append(
                f"skipping {record.run_id}: {error if isinstance(error, LlmbError) else exception_text(error)}"
            )
        else:
            errors.append(error)


def _with_facts(spec: RunSpec, groups: Mapping[tuple[str, ...], TargetGroup]) -> RunSpec:
    group = groups.get(group_key(spec.target))
    target = group.with_facts(spec.target) if group else spec.target
    return spec if target is spec.target else attrs.evolve(spec, target=target)


def _driven(each: RunPlan, record: RunRecord, registry: PluginRegistry) -> DrivenRun:
    framework, scheduler = registry.framework(each.run.framework), registry.scheduler(each.target.scheduler)
    return DrivenRun(each, record, RunLogs(each, record, framework, scheduler), _job_limit(each, record))


def _job_limit(each: RunPlan, record: RunRecord) -> JobLimit | None:
    if each.target.max_jobs is None:
        return None
    first_run = str(record.spec().get("provenance", {}).get("first_run", each.run.id))
    return JobLimit(Path(first_run).name, each.target.max_jobs)


def _session(
    runs: Sequence[DrivenRun],
    groups: Groups,
    hosts: HostConnections,
    registry: PluginRegistry,
    notes: list[str],
    *,
    recorder: SweepRecorder | None = None,
    errors: Sequence[Exception] = (),
) -> Session:
    _allow_open_files(len(runs))  # a lock per run
    loops = []
    for key, group in groups.items():
        unfinished = [run for run in runs if group_key(run.plan.target) == key and (recorder or not run.record.ended)]
        for run in unfinished:
            run.logs.peak_flops = _known_peak_flops(run.plan, registry)
        loops.append(TargetLoop(EffectRunner(group, unfinished, registry), recorder))
    records = [run.record for run in runs]
    return Session(records, loops, hosts, recorder=recorder, notes=notes, errors=errors)


def _allow_open_files(count: int) -> None:
    """Raise this process's limit of open files, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        highest = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))


def _known_peak_flops(each: RunPlan, registry: PluginRegistry) -> float | None:
    """Return the peak for the live view. An error is raised when the run is finalized, and not here."""
    try:
        return peak_flops(each.run, each.target, registry)
    except Exception:  # noqa: BLE001  # see above
        return None
