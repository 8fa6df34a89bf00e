"""Recording what happens to runs and tasks: observations become events, which are recorded and then applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from llmb.drive.driven_run import keep_error
from llmb.drive.effects import EffectRunner
from llmb.drive.secrets import missing_secrets_error
from llmb.drive.unit_table import UnitTable
from llmb.records.event_writer import EventWriter
from llmb.records.record import stamp
from llmb.state_machine.decide import decide
from llmb.state_machine.events import Ended, Event, Skipped, Submitting
from llmb.state_machine.observations import SecretsMissing, UnitObservation
from llmb.state_machine.states import Unit, apply
from llmb.values.error_text import exception_text
from llmb.values.errors import LlmbError


class Transitions:
    """Changes the states of units. The events of runs are recorded and synced before they are applied.

    ``changed`` is True once a state has changed.
    """

    def __init__(self, runner: EffectRunner, units: UnitTable) -> None:
        self.changed = False
        self._runner = runner
        self._units = units
        self._writer = EventWriter({run_id: run.record for run_id, run in runner.runs.items()})

    def close(self) -> None:
        """End the threads that write events, before the records are unlocked."""
        self._writer.close()

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
        yield from (event for event in events if event.run_id in self._units.runs and event.run_id not in failed)
        yield from skipped
        yield from (self.skip(run_id, error) for run_id, error in failed.items())

    def commit(self, events: Sequence[Event]) -> dict[str, Exception]:
        """Record events, and then apply them. Return the runs whose events could not be recorded, with the error."""
        failed = self._writer.write(event for event in events if event.run_id in self._units.runs)
        for event in events:
            if event.run_id not in failed:
                with keep_error(event.run_id, failed):
                    self._apply_event(event)
        return failed

    def _apply_event(self, event: Event) -> None:
        """Apply an event, and keep what this process holds of the run in step with its state."""
        state = self._units.states[event.run_id] = apply(self._units.states[event.run_id], event)
        self.changed = True
        if run := self._runner.runs.get(event.run_id):
            if isinstance(event, Ended):
                self._units.ended_here.add(event.run_id)
            if isinstance(event, Submitting):
                self._runner.not_submitted.add(event.run_id)
            if state.attempt != run.logs.attempt:
                run.logs.start_attempt(state.attempt)

    def skip(self, run_id: str, error: Exception) -> Event:
        """Leave a run to another process or to a later session. The other runs continue."""
        if not isinstance(error, LlmbError):
            error.add_note(f"in run {run_id}")
        self._units.skipped[run_id] = error
        self._runner.runs[run_id].record.unlock()
        reason = str(error) if isinstance(error, LlmbError) else exception_text(error)
        return Skipped(run_id=run_id, reason=reason.removeprefix(f"{run_id}: "))

    def _skip_without_secrets(self, unit: Unit) -> Iterator[Event]:
        if unit.kind == "task":
            script, what = self._runner.tasks.plans[unit.id].script, unit.name
            run_ids = [run_id for key, run_id in self._units.awaited() if key == unit.id]
        else:
            script, what, run_ids = self._runner.runs[unit.id].plan.script, "job", [unit.id]
        yield from (self.skip(run_id, missing_secrets_error(run_id, script, what)) for run_id in run_ids)
