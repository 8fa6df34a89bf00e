"""What a command or a library does with runs: start, attach, cancel, show."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

import attrs

from llmb.drive.active import ActiveRun
from llmb.drive.drive import drive, drive_rounds, raise_all
from llmb.drive.driver import Driver
from llmb.drive.events import Event
from llmb.drive.observe import EventCollector, Observer
from llmb.drive.open_files import allow_open_files
from llmb.drive.record import RunRecord, all_records, create_records, find_record
from llmb.drive.result import RunResult, read_result
from llmb.drive.secrets import refuse_missing_secrets
from llmb.drive.site import Site
from llmb.hosts.open_hosts import Hosts
from llmb.planning import RunPlan, plan, plan_run
from llmb.plugins.registry import PluginRegistry
from llmb.spec.export import export_run, import_run
from llmb.spec.run_ids import draw_run_ids
from llmb.values.error_text import exception_text
from llmb.values.errors import Fault, LlmbError, RecordError
from llmb.values.run import Target
from llmb.values.workload import RunSpec, Workload
from llmb.version import VERSION


@attrs.define
class Session:
    """Runs that one process drives, with what it needs for that. One that may never be driven is to be closed."""

    _active: list[ActiveRun] = attrs.field(repr=False)
    _drivers: list[Driver] = attrs.field(repr=False)
    _hosts: Hosts = attrs.field(repr=False)
    _left: Sequence[Exception] = attrs.field(repr=False, default=(), kw_only=True)
    _collector: EventCollector = attrs.field(repr=False, factory=EventCollector, kw_only=True)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_fault: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections to all hosts, as `drive` does at its end. The runs go on."""
        self._hosts.close()

    @property
    def results(self) -> list[RunResult]:
        """How each run stands, as its record tells it now."""
        return [read_result(each.record) for each in self._active]

    @property
    def run_ids(self) -> list[str]:
        """The ids of these runs."""
        return [each.run.id for each in self._active]

    def events(
        self, *, until: Literal["ended", "submitted"] = "ended", sleep: Callable[[float], None] = time.sleep
    ) -> Iterator[Event]:
        """Drive the runs and yield what happens, until all have ended, or are submitted.

        ``sleep`` is called between two polls with the seconds that it may take. At the end raise LlmbError if this
        process could not finish something.
        """
        try:
            rounds = drive_rounds(
                self._drivers,
                (lambda driver: driver.submitted) if until == "submitted" else (lambda driver: driver.ended),
                sleep,
                besides=self._left,
            )
            yield from self._collector.take()
            for _ in rounds:
                yield from self._collector.take()
        finally:
            self.close()

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    def wait(
        self, *, until: Literal["ended", "submitted"] = "ended", sleep: Callable[[float], None] = time.sleep
    ) -> list[RunResult]:
        """Drive the runs without looking at their events, and return their results."""
        for _ in self.events(until=until, sleep=sleep):
            pass
        return self.results

    def drive(self, *, detach: bool = False, wait: Callable[[float], None] = time.sleep) -> None:
        """Until every run has ended, or with ``detach`` until nothing is left to submit.

        ``wait`` is called between two looks with the seconds that it may take. Raises LlmbError where something is
        left that this process cannot do, when all that it can is done; ``results`` tell of every run all the same.
        """
        try:
            drive(
                self._drivers,
                (lambda driver: driver.submitted) if detach else (lambda driver: driver.ended),
                wait,
                besides=self._left,
            )
        finally:
            self.close()


def start(workload: Workload, *, observer: Observer | None = None) -> Session:
    """Record every run of a workload, ready to be driven.

    Raises SpecError with all faults and TargetError before anything is recorded; RecordError where it cannot be.
    """
    observer = observer or EventCollector()
    pool = PluginRegistry()
    workload = draw_run_ids(workload)
    planned = plan(workload, pool=pool)
    refuse_missing_secrets((each.script, "run") for each in planned)
    with _open(Hosts()) as hosts:
        sites = _sites([attrs.evolve(each.target, images=each.images) for each in planned], pool, hosts)
        _probe(sites.values(), observer)
        probed = attrs.evolve(workload, runs=tuple(_as_probed(each, sites) for each in workload.runs))
        planned = plan(probed, pool=pool)  # what was found there may refuse a run, or change its script
        for each in planned:
            sites[_site_key(each.target)].refuse_without_secrets(each.tasks)
        for note in dict.fromkeys((*workload.notes, *(note for each in planned for note in each.script.notes))):
            (observer).message(note)
        records = _create_records(planned, pool)
        active = [_active(each, record, pool) for each, record in zip(planned, records, strict=True)]
        return _session(active, sites, hosts, pool, observer)


def _as_probed(placed: RunSpec, sites: Mapping[tuple[str, ...], Site]) -> RunSpec:
    """The same run, with the facts of its target."""
    site = sites.get(_site_key(placed.target))
    return attrs.evolve(placed, target=site.with_probe(placed.target)) if site else placed


def _create_records(planned: Iterable[RunPlan], pool: PluginRegistry) -> list[RunRecord]:
    """A record for each run, or for none."""
    texts = {each.run.id: (export_run(each.placed, _provenance(each, pool)), each.script.text) for each in planned}
    return create_records(texts)


def _active(planned: RunPlan, record: RunRecord, pool: PluginRegistry) -> ActiveRun:
    return ActiveRun(planned, record, pool.framework(planned.run.framework), pool.scheduler(planned.target.scheduler))


def attach(wanted: Iterable[str] | None = None, *, observer: Observer | None = None) -> Session:
    """Runs of the record, by their ids or unique prefixes, ready to be driven on; with None all that have not ended.

    Raises RecordError for a run that is not there. A run whose spec or plugins are gone is left alone, and told of;
    where it was named that is raised, after the others were driven if there are any.
    """
    observer = observer or EventCollector()
    if wanted is None:
        return _take_up(_going(observer), observer, named=False)
    return _take_up(_named(wanted), observer, named=True)


def _going(observer: Observer) -> Iterator[RunRecord]:
    """All that have not ended, but for those of which one cannot tell."""
    for record in all_records():
        with _left_alone(record, observer):
            if not record.ended:
                yield record


def _named(wanted: Iterable[str]) -> list[RunRecord]:
    if isinstance(wanted, str):
        raise TypeError(f"runs are named by a list of ids, as [{wanted!r}]")
    found: list[RunRecord] = []
    faults: list[Fault] = []
    for each in wanted:
        try:
            found.append(find_record(each))
        except RecordError as error:
            faults += error.faults
    if faults:
        raise RecordError(*dict.fromkeys(faults))
    return found


def _take_up(records: Iterable[RunRecord], observer: Observer, *, named: bool) -> Session:
    pool = PluginRegistry()
    placed: list[tuple[RunRecord, RunSpec]] = []
    left: list[Exception] = []
    for record in records:
        with _left_alone(record, observer, left if named else None):
            placed.append((record, import_run(record.directory / "run.toml", pool)))
    with _open(Hosts()) as hosts:
        sites = _sites([each.target for record, each in placed if not record.ended], pool, hosts)
        _probe(sites.values(), observer, keep_refusals=True)
        active = []
        for record, each in placed:
            with _left_alone(record, observer, left if named else None):
                active.append(_active(plan_run(_as_probed(each, sites), pool), record, pool))
        if not active:
            raise_all(left)
        return attrs.evolve(_session(active, sites, hosts, pool, observer), left=left)


@contextmanager
def _open(hosts: Hosts) -> Iterator[Hosts]:
    """They stay open, unless what is done with them fails."""
    try:
        yield hosts
    except BaseException:  # Ctrl-C among them
        hosts.close()
        raise


@contextmanager
def _left_alone(record: RunRecord, observer: Observer, left: list[Exception] | None = None) -> Iterator[None]:
    """A run whose spec or plugins are gone, or have a bug, is told of, or is one of those ``left``."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # of any kind: it is told, or raised when the other runs are done
        if left is None:
            told = str(error) if isinstance(error, LlmbError) else exception_text(error)
            observer.message(f"{record.run_id} is left alone: {told}")
        else:
            left.append(error)


def cancel(wanted: Iterable[str], *, observer: Observer | None = None) -> Session:
    """Ask for the end of these runs and of nothing else; driven on, each comes to its end.

    The wish is recorded before anything else of a run is read: whoever drives it, now or later, finds it there.
    """
    observer = observer or EventCollector()
    records = _named(wanted)
    for record in records:
        if not record.ended:
            record.request_cancel()
    return _take_up(records, observer, named=True)


def _probe(sites: Iterable[Site], observer: Observer, *, keep_refusals: bool = False) -> None:
    """Ask each site what it is. With ``keep_refusals`` one that cannot be asked does not hold up the others."""
    for site in sites:
        try:
            for told in site.probe():
                observer.message(told)
        except Exception as error:
            if not keep_refusals:
                raise
            site.refusal = error


def _session(
    active: Sequence[ActiveRun],
    sites: dict[tuple[str, ...], Site],
    hosts: Hosts,
    pool: PluginRegistry,
    observer: Observer,
) -> Session:
    allow_open_files(len(active))  # a lock for each run
    drivers = [
        Driver(
            site,
            [each for each in active if not each.ended and _site_key(each.planned.target) == key],
            pool,
            observer,
        )
        for key, site in sites.items()
    ]
    collector = observer if isinstance(observer, EventCollector) else EventCollector()
    return Session(list(active), drivers, hosts, collector=collector)


def _site_key(target: Target[Any]) -> tuple[str, ...]:
    return (target.scheduler, target.host or "", target.workdir)


def _sites(targets: Iterable[Target[Any]], pool: PluginRegistry, hosts: Hosts) -> dict[tuple[str, ...], Site]:
    """One site for each scheduler, host and work directory, however many options its targets differ in."""
    grouped: dict[tuple[str, ...], list[Target[Any]]] = {}
    for target in targets:
        grouped.setdefault(_site_key(target), []).append(target)
    return {
        key: Site(pool.scheduler(group[0].scheduler), hosts.open(group[0]), group) for key, group in grouped.items()
    }


def _provenance(planned: RunPlan, pool: PluginRegistry) -> dict[str, Any]:
    wanted = {("framework", planned.run.framework), ("scheduler", planned.target.scheduler)}
    used = [each for each in pool.installed if (each.kind, each.name) in wanted or each.kind == "extension"]
    return {
        "llmb": VERSION,
        "plugins": {each.distribution: each.version for each in used},
        "created": datetime.now(UTC).isoformat(timespec="microseconds"),
        **({"image_digest": planned.run.image.digest} if planned.run.image and planned.run.image.digest else {}),
    }
