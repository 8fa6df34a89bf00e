"""The loop of one target group: each tick observes, records events, and performs the effects that states call for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from llmb.drive.background import Background
from llmb.drive.create_records import SweepRecorder
from llmb.drive.effects import BATCH, FIRST_BATCH, DrivenRun, EffectRunner, run_unit
from llmb.drive.event_writer import EventWriter
from llmb.drive.events import Ended, Event, Note, Skipped, SubmissionUnanswered, Submitting
from llmb.drive.machine import EFFECTS, Effect, apply, decide, needs_poll, next_effect, see_cancel
from llmb.drive.progress import ProgressReporter
from llmb.drive.record import stamp
from llmb.drive.recovery import ConnectionReporter, with_recovery_hint
from llmb.drive.secrets import missing_secrets_error
from llmb.drive.state import (
    IN_FLIGHT,
    NOT_SUBMITTED,
    CancelSeen,
    DependenciesSeen,
    Observed,
    SecretsMissing,
    Standing,
    State,
    Unit,
)
from llmb.drive.task_effects import task_unit
from llmb.values.errors import LlmbError, TargetError, UnknownOutcomeError


class TargetLoop:
    """Drives the runs of one target group.

    ``skipped`` contains the runs that this process no longer drives, each with the error. ``changed`` is True if the
    last tick changed a state, ``reading`` if it found new bytes in a log, and ``recording`` while records of the sweep
    are still being created.
    """

    def __init__(self, runner: EffectRunner, recorder: SweepRecorder | None = None) -> None:
        self.runner = runner
        self.skipped: dict[str, Exception] = {}
        self.changed = self.reading = self.recording = False
        self._recorder = recorder
        self._units = {run_id: run_unit(run.plan) for run_id, run in runner.runs.items()}
        self._tasks = {key: task_unit(task) for key, task in runner.tasks.plans.items()}
        self._states = dict.fromkeys([*self._units, *self._tasks], State())
        self._offsets = dict.fromkeys(self._units, 0)  # up to where each run's recorded events were read
        self._writer = EventWriter({run_id: run.record for run_id, run in runner.runs.items()})
        self._progress = ProgressReporter(runner.runs, self._tasks)
        self._submitting = self._may_have_submitted = self._more = False
        self._connection = ConnectionReporter(runner.group.name)

    @property
    def poll_interval_s(self) -> tuple[float, float]:
        """The shortest and the longest pause between two polls."""
        return self.runner.group.scheduler.poll_interval_s

    @property
    def ended(self) -> bool:
        """True if nothing is left to do."""
        return not any(map(self._is_left, self._units))

    @property
    def submitted(self) -> bool:
        """True if nothing is left that needs this process."""
        return all(self._states[each].stage in (*IN_FLIGHT, "ending") for each in self._units if self._is_left(each))

    def _is_left(self, run_id: str) -> bool:
        return run_id not in self.skipped and self._states[run_id].stage != "ended"

    def tick(self) -> Iterator[Event]:
        """Bring every run forward once, and yield what happens.

        Raise LlmbError if the target does not respond and no job is there, or if a plugin answers wrongly.
        """
        yield from (event if event.time else stamp(event) for event in self._tick())

    def _tick(self) -> Iterator[Event]:
        self.changed = self.reading = self.recording = self._submitting = False
        try:
            if self.runner.group.error:
                raise self.runner.group.error
            yield from self._advance()
        except LlmbError as error:
            self._may_have_submitted |= self._submitting and isinstance(error, UnknownOutcomeError)
            yield from self._notes()
            if not isinstance(error, TargetError) or not self._has_jobs:
                raise self._with_hint(error) from error
            yield from self._connection.lost(error)
        else:
            yield from self._connection.restored()

    @property
    def _has_jobs(self) -> bool:
        """True if jobs of this group continue without this process, or may do so."""
        may_run = self._may_have_submitted or any(state.stage in IN_FLIGHT for state in self._states.values())
        return may_run and not self.runner.group.error

    def _advance(self) -> Iterator[Event]:
        yield from self._acquire()
        polled = list(self.runner.poll(self._find(lambda _, state: needs_poll(state))))
        self._progress.note_reasons(polled)
        yield from self._record(polled)
        yield from self._prepare(FIRST_BATCH)
        performed: set[tuple[str, Effect]] = set()
        while due := self._due_effect(performed):
            performed.update((unit.id, due[0]) for unit, _ in due[1])
            yield from self._perform(*due)
        self._update_references()
        yield from self._read_logs()
        yield from self._progress.report(self._states)

    # Which runs this process drives

    def _acquire(self) -> Iterator[Event]:
        """Lock the runs that no process drives, read what other processes recorded, and see requests to cancel."""
        for run_id in filter(self._is_left, self.runner.runs):
            run = self.runner.runs[run_id]
            try:
                if self._recorder and not self._recorder.is_created(run_id):
                    self.recording = True
                    continue
                if not run.record.locked:
                    yield from self._catch_up(run_id, run)
                if run.record.locked:
                    self._states[run_id] = see_cancel(self._states[run_id], CancelSeen(run.record.cancel_requested))
            except Exception as error:  # noqa: BLE001  # raised after the other runs are done
                yield self._skip(run_id, error)
        if self._recorder and not self.recording:
            self._recorder.finish()

    def _catch_up(self, run_id: str, run: DrivenRun) -> Iterator[Event]:
        """Lock the run if possible, and take over what another process recorded."""
        locked = run.record.try_lock()
        before, events = self._states[run_id], list[Event]()
        if run.record.events_size != self._offsets[run_id]:
            events, self._offsets[run_id] = run.record.events(self._offsets[run_id])
        for event in events:
            self._states[run_id] = apply(self._states[run_id], event)
        state = self._states[run_id]
        if state.attempt != run.logs.attempt or (locked and before.stage != "planned"):
            run.logs.start_attempt(state.attempt)
        elif run.logs.parse_copies():
            self._progress.note_logs(run_id)
        self.changed |= bool(events) and before != State()
        if locked and state.stage == "ended":
            run.record.unlock()
        yield from events

    def _find(self, holds: Callable[[Unit, State], bool]) -> Standing:
        """Return the tasks that this process needs and the runs that it drives, if this holds for them."""
        keys = dict.fromkeys(state.task for _, state in self._waiting())
        found = [*((self._tasks[key], self._states[key]) for key in keys), *self._mine()]
        return [each for each in found if holds(*each)]

    def _mine(self) -> Standing:
        """Return the runs that this process drives and that are not over."""
        run_ids = (run_id for run_id, run in self.runner.runs.items() if run.record.locked and self._is_left(run_id))
        return [(self._units[run_id], self._states[run_id]) for run_id in run_ids]

    def _waiting(self) -> Standing:
        """Return the runs of this process that wait for a task and are not cancelled."""
        return [each for each in self._mine() if each[1].stage == "preparing" and not each[1].cancel_requested]

    # Effects

    def _prepare(self, most: int) -> Iterator[Event]:
        """Show the runs the states of their tasks. At most so many runs become ready to be submitted."""
        seen = DependenciesSeen(self._states)
        runs = [unit for unit, state in self._mine() if state.stage in NOT_SUBMITTED]
        ready = [unit for unit in runs if all(self._states[key].stage == "ended" for key in unit.depends_on)]
        held_back = {unit.id for unit in ready[most:]}
        self._more = bool(held_back)
        yield from self._record((unit, seen) for unit in runs if unit.id not in held_back)

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
                yield from self._record(self.runner.drop_references(units, self._states))
            case "finalize":
                yield from self._record(self.runner.finalize(units))
            case "check":
                yield from self._record(self.runner.check(units))
            case "submit":
                yield from self._submit(units)
                return
        yield from self._prepare(FIRST_BATCH)
        yield from self._notes()

    def _submit(self, units: Standing) -> Iterator[Event]:
        """Submit a batch of jobs. Meanwhile record that the next runs are ready to be submitted."""
        self.runner.tasks.note_references((state.task, unit.id) for unit, state in self._waiting())
        self._submitting = True
        submission = Background(lambda: list(self.runner.submit(units)), threaded=self._more)
        try:
            yield from self._prepare(BATCH)
        finally:
            observed = submission.result()
        self._submitting = False
        yield from self._record(observed)
        yield from self._notes()

    def _update_references(self) -> None:
        """Note on the target what the runs wait for, and remove the notes about tasks that are over."""
        self.runner.tasks.note_references((state.task, unit.id) for unit, state in self._waiting())
        endings = {key: ending for key in self._tasks if (ending := self._states[key].ending)}
        self.runner.tasks.remove_references(endings)

    def _read_logs(self) -> Iterator[Event]:
        running = self._find(lambda unit, state: unit.kind == "run" and state.stage == "running")
        for run_id, error in self.runner.read_logs(unit.id for unit, _ in running):
            self.reading = True
            if error:
                yield self._skip(run_id, error)
            else:
                self._progress.note_logs(run_id)

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
        failed = self._commit(events)
        yield from (event for event in events if event.run_id in self._units and event.run_id not in failed)
        yield from skipped
        yield from (self._skip(run_id, error) for run_id, error in failed.items())

    def _commit(self, events: Sequence[Event]) -> dict[str, Exception]:
        """Record events, and then apply them. Return the runs whose events could not be recorded, with the error."""
        failed = self._writer.write(event for event in events if event.run_id in self._units)
        for event in events:
            if event.run_id not in failed:
                self._take(event)
        return failed

    def _take(self, event: Event) -> None:
        """Apply an event, and keep what this process holds of the run in step with its state."""
        state = self._states[event.run_id] = apply(self._states[event.run_id], event)
        self.changed = True
        if run := self.runner.runs.get(event.run_id):
            self._offsets[event.run_id] = run.record.events_size
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
            script, what = self.runner.tasks.plans[unit.id].script, unit.name
            run_ids = [run.id for run, state in self._waiting() if state.task == unit.id]
        else:
            script, what, run_ids = self.runner.runs[unit.id].plan.script, "job", [unit.id]
        yield from (self._skip(run_id, missing_secrets_error(run_id, script, what)) for run_id in run_ids)

    def _notes(self) -> Iterator[Event]:
        yield from (Note(text=self.runner.notes.pop(0)) for _ in list(self.runner.notes))

    def _with_hint(self, error: LlmbError) -> LlmbError:
        """Return the error with the commands that resume or cancel the remaining runs. Record it for submissions."""
        submitting = [unit.id for unit, state in self._mine() if state.stage == "submitting"]
        self._commit([stamp(SubmissionUnanswered(run_id=each, reason=str(error))) for each in submitting])
        left = (run.record for run_id, run in self.runner.runs.items() if self._states[run_id].stage != "ended")
        return with_recovery_hint(error, left)

    def release(self) -> None:
        """Let other processes, or a later session of this process, drive the runs."""
        self.skipped.clear()
        for run in self.runner.runs.values():
            run.record.unlock()
        self._writer.close()
