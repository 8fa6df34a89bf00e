"""Changes of the states of runs and tasks: by what this process observes, and by what other processes recorded."""

from collections.abc import Iterable, Iterator, Sequence

from llmb.drive.isolate_errors import keep_error
from llmb.drive.progress import ProgressReporter
from llmb.drive.runs_and_tasks import RunsAndTasks
from llmb.drive.secrets import missing_secrets_error
from llmb.drive.session_run import SessionRun
from llmb.drive.stopped_followers import StoppedFollowers
from llmb.drive.target_errors import with_recovery_hint
from llmb.records.create_records import SweepRecorder
from llmb.records.event_writer import EventWriter
from llmb.records.record import stamp
from llmb.state_machine.apply_events import apply, apply_cancel_request
from llmb.state_machine.decide import decide
from llmb.state_machine.events import Ended, Event, Skipped, Submitting
from llmb.state_machine.observations import SecretsMissing, UnitObservation
from llmb.state_machine.units import State, Unit
from llmb.values.errors import LlmbError, PluginError
from llmb.values.texts.error_text import describe_error


class Transitions:
    """Changes the states of units. The events of runs are recorded and synced before they are applied.

    This process drives a run from the moment at which it locks the run's record. ``changed`` is True once a state has
    changed. ``recording`` is True while records of the sweep are still being created.
    """

    def __init__(self, units: RunsAndTasks, progress: ProgressReporter, recorder: SweepRecorder | None) -> None:
        self.changed = False
        self.recording = False
        self._units = units
        self._progress = progress
        self._recorder = recorder
        self._writer = EventWriter({run_id: run.record for run_id, run in units.runs.items()})
        self._stopped = StoppedFollowers()

    def close(self) -> None:
        """End the threads that write events, before the records are unlocked."""
        self._writer.close()

    def lock_runs(self) -> Iterator[Event]:
        """Lock the runs that no process drives, and see requests to cancel. Note which stopped processes drive runs."""
        yield from self.lock_created()
        left = self._units.left()
        yield from self._stopped.note(run.record for run in left.values() if not run.record.locked)
        for run_id, run in left.items():
            try:
                requested = run.record.cancel_requested_ns
                self._units.states[run_id] = apply_cancel_request(self._units.states[run_id], requested)
            except Exception as error:  # noqa: BLE001  # raised after the other runs are done
                yield self.skip(run_id, error)

    def lock_created(self) -> Iterator[Event]:
        """Lock the runs that no process drives and that have a record, and read what other processes recorded."""
        self.recording = False
        for run_id, run in self._units.left().items():
            try:
                if run.record.locked:
                    continue
                if self._recorder and not self._recorder.is_created(run_id):
                    self.recording = True
                    continue
                yield from self._catch_up(run_id, run)
            except Exception as error:  # noqa: BLE001  # raised after the other runs are done
                yield self.skip(run_id, error)
        if self._recorder and not self.recording:
            self._recorder.finish(wait_for_all=False)

    def _catch_up(self, run_id: str, run: SessionRun) -> Iterator[Event]:
        """Lock the run if possible, and take over what another process recorded."""
        locked = run.record.try_lock()
        before, events = self._units.states[run_id], run.record.new_events()
        for event in events:
            self._units.states[run_id] = apply(self._units.states[run_id], event)
            self._units.submitting_here.discard(run_id)
        state = self._units.states[run_id]
        if state.attempt != run.logs.attempt or (locked and before.stage != "planned"):
            run.logs.start_attempt(state.attempt)
        elif run.logs.parse_copies():
            self._progress.mark_logs_grown(run_id)
        self.changed |= bool(events) and before != State()
        yield from events

    def record(self, observed: Iterable[UnitObservation]) -> Iterator[Event]:
        """Decide what observations mean, record the events of runs together, and then apply them."""
        events: list[Event] = []
        skipped: list[Event] = []
        for unit, seen in observed:
            if isinstance(seen, Exception):
                skipped.append(self.skip(unit.id, seen))
            elif isinstance(seen, SecretsMissing):
                skipped += self._skip_without_secrets(unit)
            else:
                events += map(stamp, decide(unit, self._units.states[unit.id], seen))
        failed = self.commit(events)
        yield from (event for event in events if event.run_id in self._units.run_units and event.run_id not in failed)
        yield from skipped
        yield from (self.skip(run_id, error) for run_id, error in failed.items())

    def commit(self, events: Sequence[Event]) -> dict[str, Exception]:
        """Record events, and then apply them. Return the runs whose events could not be recorded, with the error."""
        failed = self._writer.write(event for event in events if event.run_id in self._units.run_units)
        for event in events:
            if event.run_id not in failed:
                with keep_error(event.run_id, failed):
                    self._apply_event(event)
        return failed

    def _apply_event(self, event: Event) -> None:
        """Apply an event, and keep what this process holds of the run in step with its state."""
        state = self._units.states[event.run_id] = apply(self._units.states[event.run_id], event)
        self.changed = True
        if run := self._units.runs.get(event.run_id):
            if isinstance(event, Ended):
                self._units.ended_here.add(event.run_id)
            if isinstance(event, Submitting):
                self._units.submitting_here.add(event.run_id)
            if state.attempt != run.logs.attempt:
                run.logs.start_attempt(state.attempt)

    def skip(self, run_id: str, error: Exception) -> Event:
        """Leave a run to another process or to a later session. The other runs continue."""
        if not isinstance(error, LlmbError):
            error.add_note(f"in run {run_id}")
        if isinstance(error, PluginError):
            error = with_recovery_hint(error, [self._units.runs[run_id].record])
        self._units.skipped[run_id] = error
        self._units.runs[run_id].record.unlock()
        return Skipped(run_id=run_id, reason=describe_error(error).removeprefix(f"{run_id}: "))

    def _skip_without_secrets(self, unit: Unit) -> Iterator[Event]:
        script, what, run_ids = self._units.script(unit), "job", [unit.id]
        if unit.kind == "task":
            what, run_ids = unit.name, [run_id for key, run_id in self._units.awaited() if key == unit.id]
        yield from (self.skip(run_id, missing_secrets_error(run_id, script, what)) for run_id in run_ids)
