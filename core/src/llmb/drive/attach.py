"""Attaching to recorded runs, and cancelling them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager

from llmb.drive.activity import describe_probe, ignore_activity
from llmb.drive.open_session import driven_run, open_session, opened, with_facts
from llmb.drive.session import Session, raise_worst
from llmb.drive.target_group import TargetGroup, group_targets
from llmb.hosts.host_connections import HostConnections
from llmb.planning import plan_run
from llmb.plugins.registry import PluginRegistry
from llmb.records.find_records import all_records, find_record, open_record
from llmb.records.record import RunRecord
from llmb.records.run_filters import is_filter
from llmb.records.select_runs import check_cancel_filter, select_unfinished
from llmb.spec.export import import_run
from llmb.values.error_text import exception_text
from llmb.values.errors import Fault, LlmbError, RecordError
from llmb.values.workload import RunSpec


def attach(wanted: Iterable[str] | None = None, *, report_activity: Callable[[str], object] | None = None) -> Session:
    """Return a session that drives recorded runs to their end; None means all unfinished runs.

    Each of ``wanted`` is a run id, a unique prefix, or filters of `llmb runs` in braces, which select unfinished runs.
    Raise RecordError for a run that does not exist. A run whose record, spec or plugins are damaged is skipped; if the
    run was named, its error is raised after the other runs are done. ``report_activity`` is that of `start`.
    """
    notes: list[str] = []
    report_activity = report_activity or ignore_activity
    if wanted is None:
        return _attach(_unfinished(notes), frozenset(), notes, report_activity)
    named, selected = _find_all(_as_list(wanted), notes)
    return _attach([*named, *selected], _run_ids(named), notes, report_activity)


def cancel(wanted: Iterable[str], *, report_activity: Callable[[str], object] | None = None) -> Session:
    """Request the end of these runs, and return a session that drives them to their end. Raise RecordError.

    ``wanted`` is that of `attach`. Raise SpecError for empty filters, and for those that only ended runs can match.
    The request is recorded before anything else of a run is read, so that whichever process drives the run sees it.
    ``report_activity`` is that of `start`.
    """
    wanted = _as_list(wanted)
    for each in filter(is_filter, wanted):
        check_cancel_filter(each)
    notes: list[str] = []
    named, selected = _find_all(wanted, notes)
    for record in named:
        _request_cancel(record)
    cancelled = list(named)
    for record in selected:
        with _skip_on_error(record, notes):
            _request_cancel(record)
            cancelled.append(record)
    return _attach(cancelled, _run_ids(named), notes, report_activity or ignore_activity)


def _run_ids(records: Iterable[RunRecord]) -> frozenset[str]:
    return frozenset(record.run_id for record in records)


def _request_cancel(record: RunRecord) -> None:
    if not record.ended:
        record.request_cancel()


def _unfinished(notes: list[str]) -> list[RunRecord]:
    """Return the runs that have not ended, oldest first, because their jobs are submitted in this order."""
    unfinished: list[RunRecord] = []
    for record in all_records():
        with _skip_on_error(record, notes):
            if not record.ended:
                unfinished.append(record)
    return sorted(unfinished, key=_creation_time)


def _creation_time(record: RunRecord) -> str:
    """Return the time in the record's provenance, or "" if the record is damaged."""
    try:
        return str(record.spec()["provenance"]["created"])
    except (RecordError, LookupError, TypeError):
        return ""


def _as_list(wanted: Iterable[str]) -> list[str]:
    if isinstance(wanted, str):
        raise TypeError(f"expected a list of run ids, such as [{wanted!r}]")
    return list(wanted)


def _find_all(wanted: Iterable[str], notes: list[str]) -> tuple[list[RunRecord], list[RunRecord]]:
    """Return the records that are named, and the others that filters select. Skip damaged ones of a filter."""
    named: dict[str, RunRecord] = {}
    selected: dict[str, RunRecord] = {}
    faults: list[Fault] = []
    for each in wanted:
        try:
            if is_filter(each):
                selected |= {record.run_id: record for record in _open_readable(select_unfinished(each), notes)}
            else:
                record = find_record(each)
                named[record.run_id] = record
        except RecordError as error:
            faults += error.faults
    if faults:
        raise RecordError(*dict.fromkeys(faults))
    return list(named.values()), [record for run_id, record in selected.items() if run_id not in named]


def _open_readable(run_ids: Iterable[str], notes: list[str]) -> list[RunRecord]:
    """Return the records that are not damaged, with a note on each other one. Raise RecordError if all are damaged."""
    records: list[RunRecord] = []
    errors: list[RecordError] = []
    for run_id in run_ids:
        try:
            records.append(open_record(run_id))
        except RecordError as error:  # an error of one record does not stop the others
            errors.append(error)
            skipped = f"skipping {run_id}: {error}"
            notes += [skipped] if skipped not in notes else []
    if errors and not records:
        raise RecordError(*(fault for error in errors for fault in error.faults))
    return records


def _attach(
    records: Iterable[RunRecord], named: Set[str], notes: list[str], report_activity: Callable[[str], object]
) -> Session:
    """Return the session of these runs. Errors of ``named`` runs are raised, and those of other runs are notes."""
    report_activity("reading the records")
    registry = PluginRegistry()
    errors: list[Exception] = []
    specs: list[tuple[RunRecord, RunSpec]] = []
    for record in records:
        with _skip_on_error(record, notes, errors if record.run_id in named else None):
            specs.append((record, import_run(record.directory / "run.toml", registry)))
    with opened(HostConnections()) as hosts:
        groups = group_targets([each.target for record, each in specs if not record.ended], registry, hosts)
        for group in groups.values():
            report_activity(describe_probe(group))
            notes += _probe_or_keep_error(group)
        runs = []
        for record, each in specs:
            with _skip_on_error(record, notes, errors if record.run_id in named else None):
                runs.append(driven_run(plan_run(with_facts(each, groups), registry), record, registry))
        if not runs:
            raise_worst(errors)
        return open_session(runs, groups, hosts, registry, notes, errors=errors)


def _probe_or_keep_error(group: TargetGroup) -> Sequence[str]:
    """Probe a group. If it does not respond, keep the error, so that runs of other targets continue."""
    try:
        return group.probe()
    except Exception as error:  # noqa: BLE001  # raised by the loop of this group
        group.error = error
        return ()


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
