"""Attaching to recorded runs, and cancelling them."""

from collections.abc import Callable, Collection, Container, Iterable

from llmb.drive.isolate_errors import keep_error
from llmb.drive.session import Session, build_session, ignore_activity, raise_worst
from llmb.drive.session_run import SessionRun, session_run
from llmb.drive.target_group import TargetGroup, group_targets, with_facts
from llmb.hosts.host_connections import HostConnections
from llmb.plan_runs import RunPlan, plan_run
from llmb.plugins.find_peak_flops import find_peak_flops
from llmb.plugins.registry import PluginRegistry
from llmb.records.find_record_by_id import all_records, find_record, open_record
from llmb.records.index.filters_and_sort_keys import is_filter
from llmb.records.index.select_runs import check_cancel_filter, select_unfinished
from llmb.records.record import RunRecord
from llmb.spec.spec_of_run import read_run_toml
from llmb.values.errors import Fault, RecordError, collect_errors
from llmb.values.texts.error_text import describe_error
from llmb.values.types.check_arguments import check_arguments
from llmb.values.workload import RunSpec


@check_arguments
def attach(runs: Iterable[str] | None = None, *, report_activity: Callable[[str], object] | None = None) -> Session:
    """Return a session that drives recorded runs to their end; None means all unfinished runs.

    Each of ``runs`` is a run id, a unique prefix, or filters of `llmb runs` in braces, which select unfinished runs.
    Raise RecordError for a run that does not exist. A run whose record, spec or plugins are damaged is skipped; if the
    run was named, its error is raised after the other runs are done. If all of ``runs`` are damaged, raise all
    errors. ``report_activity`` is that of `start`.
    """
    failed: dict[str, Exception] = {}
    if runs is None:
        return _attach(_unfinished(failed), failed, None, report_activity)
    named, selected = _find_all(runs, failed)
    return _attach((named | selected).values(), failed, named, report_activity)


@check_arguments
def cancel(runs: Iterable[str], *, report_activity: Callable[[str], object] | None = None) -> Session:
    """Request the end of these runs, and return a session that drives them to their end. Raise RecordError.

    ``runs`` selects runs as in `attach`. Raise SpecError for empty filters, and for those that only ended runs can
    match. The request is recorded before anything else of a run is read, so that whichever process drives the run sees
    it. If no other session drives the run, its job continues until the returned session is iterated over. The error of
    a run that cannot be cancelled is raised after the other runs are done. ``report_activity`` is that of `start`.
    """
    runs = list(runs)
    for each in filter(is_filter, runs):
        check_cancel_filter(each)
    failed: dict[str, Exception] = {}
    named, selected = _find_all(runs, failed)
    cancelled: list[RunRecord] = []
    for record in (named | selected).values():
        with keep_error(record.run_id, failed):
            if not record.ended:
                record.request_cancel()
            cancelled.append(record)
    raised = {*named, *selected, *failed}
    return _attach(cancelled, failed, raised, report_activity)


def _unfinished(failed: dict[str, Exception]) -> list[RunRecord]:
    """Return the runs that have not ended, oldest first, because their jobs are submitted in this order."""
    unfinished: list[RunRecord] = []
    for record in all_records():
        with keep_error(record.run_id, failed):
            if not record.ended:
                unfinished.append(record)
    return sorted(unfinished, key=_creation_time)


def _creation_time(record: RunRecord) -> str:
    """Return the time in the record's provenance, or "" if the record is damaged."""
    try:
        return str(record.spec()["provenance"]["created"])
    except (RecordError, LookupError, TypeError):
        return ""


def _find_all(runs: Iterable[str], failed: dict[str, Exception]) -> tuple[dict[str, RunRecord], dict[str, RunRecord]]:
    """Return the records that are named, and those that filters select, by run id.

    Add errors of selected runs to ``failed``. Raise RecordError with the errors of all names.
    """
    named: dict[str, RunRecord] = {}
    selected: dict[str, RunRecord] = {}
    faults: list[Fault] = []
    for each in runs:
        with collect_errors(faults, RecordError):
            if is_filter(each):
                for run_id in select_unfinished(each):
                    with keep_error(run_id, failed):
                        selected[run_id] = open_record(run_id)
            else:
                record = find_record(each)
                named[record.run_id] = record
    if faults:
        raise RecordError(*dict.fromkeys(faults))
    return named, selected


def _attach(
    records: Collection[RunRecord],
    failed: dict[str, Exception],
    raised: Container[str] | None,
    report_activity: Callable[[str], object] | None,
) -> Session:
    """Return the session of these runs. Add errors of runs to ``failed``, which has those of other runs.

    At its end, the session raises the errors of the runs in ``raised``. Those of other runs are notes. If no run
    without an error is left, raise all errors now, unless ``raised`` is None.
    """
    report_activity = report_activity or ignore_activity
    report_activity("reading the records")
    registry = PluginRegistry()
    ended, unfinished = _read_specs(records, failed, registry)
    with HostConnections().closed_on_error() as hosts:
        groups = group_targets([spec.target for _, spec in unfinished], registry, hosts)
        notes = _probe(groups.values(), report_activity)
        runs: list[SessionRun] = []
        for record, spec in unfinished:
            with keep_error(record.run_id, failed):
                plan = plan_run(with_facts(spec, groups), registry)
                runs.append(session_run(plan, record, registry, peak_flops=_peak_or_none(plan, registry)))
        usable = {*ended, *(run.record.run_id for run in runs)}
        if not usable and raised is not None:
            raise_worst([*failed.values()])
        to_raise = [run_id for run_id in failed if raised is not None and run_id in raised]
        notes += [f"skipping {each}: {describe_error(error)}" for each, error in failed.items() if each not in to_raise]
        errors = [failed[run_id] for run_id in to_raise]
        attached = [record for record in records if record.run_id in usable]
        return build_session(attached, runs, groups, hosts, registry, notes, errors=errors)


def _read_specs(
    records: Iterable[RunRecord], failed: dict[str, Exception], registry: PluginRegistry
) -> tuple[set[str], list[tuple[RunRecord, RunSpec]]]:
    """Return the ids of the runs that have ended, whose results need no plugins, and the specs of the others."""
    ended: set[str] = set()
    unfinished: list[tuple[RunRecord, RunSpec]] = []
    for record in records:
        with keep_error(record.run_id, failed):
            if record.ended:
                ended.add(record.run_id)
            else:
                unfinished.append((record, read_run_toml(record.directory / "run.toml", registry)))
    return ended, unfinished


def _probe(groups: Iterable[TargetGroup], report_activity: Callable[[str], object]) -> list[str]:
    """Probe the targets, and return warnings for the user. The loop of a group raises the error of its probe."""
    warnings: list[str] = []
    for group in groups:
        report_activity(group.describe_probe())
        try:
            warnings += group.probe()
        except Exception as error:  # noqa: BLE001  # other targets continue
            group.error = error
    return warnings


def _peak_or_none(plan: RunPlan, registry: PluginRegistry) -> float | None:
    """Return the peak of one GPU. The error of a recorded run is raised when the run is finalized, not here."""
    try:
        return find_peak_flops(plan.run, plan.target, registry)
    except Exception:  # noqa: BLE001  # see above
        return None
