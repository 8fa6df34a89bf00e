"""The loop of one target group: each tick observes, records events, and performs the effects that states call for."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from llmb.drive.create_records import WRITERS, SweepRecorder
from llmb.drive.effects import DrivenRun, EffectRunner, Observed, SecretsMissing, Standing, run_unit, task_unit
from llmb.drive.events import (
    Ended,
    Event,
    Note,
    Progress,
    Skipped,
    SubmissionUnanswered,
    Submitting,
    TargetBack,
    TargetLost,
)
from llmb.drive.machine import EFFECTS, Effect, apply, decide, needs_poll, next_effect, see_cancel
from llmb.drive.record import stamp
from llmb.drive.secrets import describe_missing_secrets
from llmb.drive.state import IN_FLIGHT, NOT_SUBMITTED, CancelSeen, DependenciesSeen, State, Unit
from llmb.values.errors import LlmbError, RecordError, SpecError, TargetError, UnknownOutcomeError
from llmb.values.job_status import JobStatus

REPEAT_REPORT_S = 30.0
"""How often a target that does not respond is reported again."""

FEW = 4
"""Runs whose events are recorded one after the other, without threads."""


class TargetLoop:
    """Drives the runs of one target group.

    ``skipped`` contains the runs that this process no longer drives, each with the error. ``changed`` is True if the
    last tick changed a state, ``reading`` if it found new bytes in a log.
    """

    def __init__(self, runner: EffectRunner, recorder: SweepRecorder | None = None) -> None:
        self.runner = runner
        self.skipped: dict[str, Exception] = {}
        self.changed = self.reading = False
        self._recorder = recorder
        self._units = {run_id: run_unit(run.plan) for run_id, run in runner.runs.items()}
        self._tasks = {key: task_unit(task) for key, task in runner.tasks.items()}
        self._states = dict.fromkeys([*self._units, *self._tasks], State())
        self._offsets = dict.fromkeys(self._units, 0)  # up to where each run's recorded events were read
        self._details = dict.fromkeys(self._units, "")
        self._shown: dict[str, tuple[str, str]] = {}  # state and detail of the last progress
        self._submitting = self._may_have_submitted = False
        self._lost_since: float | None = None
        self._writers: ThreadPoolExecutor | None = None

    @property
    def poll_interval_s(self) -> tuple[float, float]:
        """The shortest and the longest pause between two polls."""
        return self.runner.group.scheduler.poll_interval_s

    @property
    def ended(self) -> bool:
        """True if nothing is left to do."""
        return all(self._states[run_id].stage == "ended" for run_id in self._units if run_id not in self.skipped)

    @property
    def submitted(self) -> bool:
        """True if nothing is left that needs this process."""
        states = (self._states[run_id] for run_id in self._units if run_id not in self.skipped)
        return all(state.stage in (*IN_FLIGHT, "ending", "ended") for state in states)

    def tick(self) -> Iterator[Event]:
        """Bring every run forward once, and yield what happens.

        Raise LlmbError if the target does not respond and no job is there, or if a plugin answers wrongly.
        """
        yield from (event if event.time else stamp(event) for event in self._tick())

    def _tick(self) -> Iterator[Event]:
        self.changed = self.reading = self._submitting = False
        try:
            if self.runner.group.error:
                raise self.runner.group.error
            yield from self._advance()
        except LlmbError as error:
            unknown = isinstance(error, UnknownOutcomeError) and self._submitting
            self._may_have_submitted |= unknown
            yield from self._notes()
            if not isinstance(error, TargetError) or not self._has_jobs:
                raise self._with_hint(error) from error
            yield from self._report_lost(error)
        else:
            if self._lost_since is not None:
                self._lost_since = None
                yield TargetBack(target=self.runner.group.name)

    @property
    def _has_jobs(self) -> bool:
        """True if jobs of this group continue without this process, or may do so."""
        if self.runner.group.error:
            return False
        return self._may_have_submitted or any(state.stage in IN_FLIGHT for state in self._states.values())

    def _report_lost(self, error: TargetError) -> Iterator[Event]:
        now = time.monotonic()
        if self._lost_since is None or now - self._lost_since > REPEAT_REPORT_S:
            self._lost_since = now
            yield TargetLost(target=self.runner.group.name, reason=str(error))

    def _advance(self) -> Iterator[Event]:
        yield from self._acquire()
        polled = list(self.runner.poll(self._find(lambda _, state: needs_poll(state))))
        self._note_details(polled)
        yield from self._record(polled)
        yield from self._prepare()
        performed: set[tuple[str, Effect]] = set()
        while due := self._due_effect(performed):
            effect, units = due
            performed.update((unit.id, effect) for unit, _ in units)
            yield from self._perform(effect, units)
            yield from self._prepare()
        yield from self._clean_references()
        yield from self._read_logs()
        yield from self._show()

    # Which runs this process drives

    def _acquire(self) -> Iterator[Event]:
        """Lock the runs that no process drives, read what other processes recorded, and see requests to cancel."""
        for run_id, run in self.runner.runs.items():
            if run_id in self.skipped or self._states[run_id].stage == "ended":
                continue
            try:
                if self._recorder and not self._recorder.is_created(run_id):
                    self.changed = True  # the next tick follows soon
                    continue
                if not run.record.locked:
                    yield from self._catch_up(run_id, run)
                if run.record.locked:
                    request = CancelSeen(run.record.cancel_requested)
                    self._states[run_id] = see_cancel(self._states[run_id], request)
            except Exception as error:  # noqa: BLE001  # raised after the other runs are done
                yield self._skip(run_id, error)

    def _catch_up(self, run_id: str, run: DrivenRun) -> Iterator[Event]:
        """Lock the run if possible, and take over what another process recorded."""
        locked = run.record.try_lock()
        before = self._states[run_id]
        events: list[Event] = []
        if run.record.events_size != self._offsets[run_id]:
            events, self._offsets[run_id] = run.record.events(self._offsets[run_id])
        for event in events:
            self._take(event)
        state = self._states[run_id]
        if state.attempt != run.logs.attempt or (locked and before.stage != "planned"):
            run.logs.start_attempt(state.attempt)
        elif run.logs.parse_copies():
            self._shown.pop(run_id, None)
        self.changed |= bool(events) and before != State()
        yield from events
        if locked and state.stage == "ended":
            run.record.unlock()

    def _find(self, holds: Callable[[Unit, State], bool]) -> Standing:
        """Return the runs that this process drives, and the tasks that such a run waits for, for which this holds."""
        mine = [self._units[run_id] for run_id in self._mine()]
        keys = dict.fromkeys(state.task for _, state in self._waiting())
        found = [(unit, self._states[unit.id]) for unit in [*(self._tasks[key] for key in keys), *mine]]
        return [each for each in found if holds(*each)]

    def _mine(self) -> Iterator[str]:
        for run_id, run in self.runner.runs.items():
            if run.record.locked and run_id not in self.skipped and self._states[run_id].stage != "ended":
                yield run_id

    def _waiting(self) -> Standing:
        """Return the runs that wait for a task and are not cancelled."""
        runs = [(self._units[run_id], self._states[run_id]) for run_id in self._mine()]
        return [(unit, state) for unit, state in runs if state.stage == "preparing" and not state.cancel_requested]

    # Effects

    def _prepare(self) -> Iterator[Event]:
        """Let the runs see how their tasks stand."""
        before = self._find(lambda unit, state: unit.kind == "run" and state.stage in NOT_SUBMITTED)
        yield from self._record((unit, DependenciesSeen(self._states)) for unit, _ in before)

    def _due_effect(self, performed: Collection[tuple[str, Effect]]) -> tuple[Effect, Standing] | None:
        """Return the next effect and its units, without those for which this tick performed it already."""
        due: dict[Effect, list[tuple[Unit, State]]] = {}
        for unit, state in self._find(lambda *_: True):
            effect = next_effect(unit, state)
            if effect and (unit.id, effect) not in performed:
                due.setdefault(effect, []).append((unit, state))
        return next(((effect, due[effect]) for effect in EFFECTS if effect in due), None)

    def _perform(self, effect: Effect, units: Standing) -> Iterator[Event]:
        match effect:
            case "cancel":
                yield from self._record(self.runner.cancel(units))
            case "drop_references":
                yield from self._record(self.runner.drop_references(units, self._needed_tasks()))
            case "finalize":
                yield from self._record(self.runner.finalize(units))
            case "check":
                yield from self._record(self.runner.check(units))
            case "submit":
                self.runner.note_references((state.task, unit.id) for unit, state in self._waiting())
                self._submitting = True
                for observed in self.runner.submit(units):
                    yield from self._record(observed)
                self._submitting = False
        yield from self._notes()

    def _needed_tasks(self) -> set[str]:
        """Return the tasks of runs that are neither over nor cancelled, whoever drives them."""
        return {
            task.key
            for run_id, run in self.runner.runs.items()
            if self._states[run_id].stage != "ended" and not run.record.cancel_requested
            for task in run.plan.tasks
        }

    def _clean_references(self) -> Iterator[Event]:
        self.runner.note_references((state.task, unit.id) for unit, state in self._waiting())
        endings = {key: ending for key in self._tasks if (ending := self._states[key].ending)}
        self.runner.remove_references(endings)
        yield from self._notes()

    def _read_logs(self) -> Iterator[Event]:
        running = self._find(lambda unit, state: unit.kind == "run" and state.stage == "running")
        for run_id, error in self.runner.read_logs(unit.id for unit, _ in running):
            self.reading = True
            if error:
                yield self._skip(run_id, error)
            else:
                self._shown.pop(run_id, None)

    # Events

    def _record(self, observed: Iterable[Observed]) -> Iterator[Event]:
        """Decide what observations mean, record the events of runs together, and then apply them."""
        events: list[Event] = []
        skipped: list[Event] = []
        for unit, seen in observed:
            if isinstance(seen, Exception):
                skipped.append(self._skip(unit.id, seen))
            elif isinstance(seen, SecretsMissing):
                skipped += self._skip_without_secrets(unit)
            else:
                events += map(stamp, decide(unit, self._states[unit.id], seen))
        failed = self._write([event for event in events if event.run_id in self._units])
        for run_id, error in failed.items():
            skipped.append(self._skip(run_id, error))
        for event in events:
            if event.run_id not in failed:
                self._take(event)
                self._follow_up(event)
                self.changed = True
        yield from (event for event in events if event.run_id in self._units and event.run_id not in failed)
        yield from skipped

    def _write(self, events: list[Event]) -> dict[str, Exception]:
        """Record events, synced together. Return the runs whose events could not be recorded, with the error."""
        by_run: dict[str, list[Event]] = {}
        for event in events:
            by_run.setdefault(event.run_id, []).append(event)
        return {run_id: error for run_id, error in self._write_each(by_run) if error}

    def _write_each(self, by_run: dict[str, list[Event]]) -> Iterator[tuple[str, Exception | None]]:
        if len(by_run) <= FEW:
            yield from map(self._write_one, by_run.items())
            return
        self._writers = self._writers or ThreadPoolExecutor(WRITERS, thread_name_prefix="llmb-events")
        yield from self._writers.map(self._write_one, by_run.items())

    def _write_one(self, item: tuple[str, list[Event]]) -> tuple[str, Exception | None]:
        run_id, events = item
        try:
            self.runner.runs[run_id].record.add_events(events)
        except RecordError as error:
            return run_id, error
        return run_id, None

    def _take(self, event: Event) -> None:
        self._states[event.run_id] = apply(self._states[event.run_id], event)

    def _follow_up(self, event: Event) -> None:
        """Keep what this process holds of a run in step with its state."""
        run = self.runner.runs.get(event.run_id)
        if run is None:
            return
        self._offsets[event.run_id] = run.record.events_size
        state = self._states[event.run_id]
        if isinstance(event, Submitting):
            self.runner.not_submitted.add(event.run_id)
        if state.attempt != run.logs.attempt:
            run.logs.start_attempt(state.attempt)
        if isinstance(event, Ended):
            run.record.unlock()

    def _skip(self, run_id: str, error: Exception) -> Event:
        """Leave a run to another process or to a later session. The other runs continue."""
        if not isinstance(error, LlmbError):
            error.add_note(f"in run {run_id}")
        self.skipped[run_id] = error
        self.runner.runs[run_id].record.unlock()
        return Skipped(run_id=run_id, reason=str(error).removeprefix(f"{run_id}: "))

    def _skip_without_secrets(self, unit: Unit) -> Iterator[Event]:
        if unit.kind == "task":
            script, what = self.runner.tasks[unit.id].script, unit.name
            run_ids = [run.id for run, state in self._waiting() if state.task == unit.id]
        else:
            script, what, run_ids = self.runner.runs[unit.id].plan.script, "job", [unit.id]
        for run_id in run_ids:
            lines = describe_missing_secrets(script, what)
            errors = [f"{run_id}: {line}; then resume with `llmb attach {run_id}`" for line in lines]
            yield self._skip(run_id, SpecError(*errors))

    def _note_details(self, polled: Iterable[Observed]) -> None:
        for unit, seen in polled:
            if isinstance(seen, JobStatus) and seen.state in ("pending", "unknown", "running"):
                reason = "" if seen.state == "running" else seen.reason
                if unit.kind == "run":
                    self._details[unit.id] = reason
                for run, state in self._waiting() if unit.kind == "task" else ():
                    if state.task == unit.id:
                        self._details[run.id] = f"{unit.name}: {seen.reason}" if seen.reason else ""

    def _show(self) -> Iterator[Event]:
        """Yield the progress of every run whose state, detail or logs changed."""
        for run_id in self._units:
            if self._shown.get(run_id) != (shown := self._current(run_id)):
                self._shown[run_id] = shown
                yield self.progress(run_id)

    def _current(self, run_id: str) -> tuple[str, str]:
        state = self._states[run_id]
        detail = "" if state.stage in ("ending", "ended") else self._details[run_id]
        if not detail and state.stage == "preparing" and state.task in self._tasks:
            detail = self._tasks[state.task].name
        return state.run_state, detail

    def progress(self, run_id: str) -> Progress:
        """Return how far a run is."""
        state, detail = self._states[run_id], self._current(run_id)[1]
        return self.runner.runs[run_id].logs.progress(state.run_state, detail)

    def _notes(self) -> Iterator[Event]:
        notes, self.runner.notes = self.runner.notes, []
        yield from (Note(text=text) for text in notes)

    def _with_hint(self, error: LlmbError) -> LlmbError:
        """Return the error with the commands that resume or cancel the remaining runs. Record it for submissions."""
        left = [run_id for run_id, state in self._states.items() if run_id in self._units and state.stage != "ended"]
        for run_id in left:
            record = self.runner.runs[run_id].record
            if self._states[run_id].stage == "submitting" and record.locked:
                with suppress(RecordError):  # the user sees the first error
                    record.add_events([stamp(SubmissionUnanswered(run_id=run_id, reason=str(error)))])
                    self._offsets[run_id] = record.events_size
        cancelled = [run_id for run_id in left if self.runner.runs[run_id].record.cancel_requested]
        wanted = [run_id for run_id in left if run_id not in cancelled]
        return type(error)("; ".join([str(error), *_recovery_hints(wanted, cancelled)]))

    def release(self) -> None:
        """Let other processes, or a later session of this process, drive the runs."""
        self.skipped.clear()
        for run in self.runner.runs.values():
            run.record.unlock()
        if self._writers:
            self._writers.shutdown()
            self._writers = None


def _recovery_hints(wanted: list[str], cancelled: list[str]) -> Iterator[str]:
    if wanted:
        ids = " ".join(wanted)
        yield f"fix this, then resume with `llmb attach {ids}` or stop with `llmb cancel {ids}`"
    if cancelled:
        yield f"nothing is cancelled yet: fix this, then repeat `llmb cancel {' '.join(cancelled)}`"
