"""The locks of runs: this process drives a run from the moment at which it locks the run's record."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from llmb.drive.driven_run import DrivenRun
from llmb.drive.effects import EffectRunner
from llmb.drive.progress import ProgressReporter
from llmb.drive.transitions import Transitions
from llmb.drive.unit_table import UnitTable
from llmb.records.create_records import SweepRecorder
from llmb.state_machine.events import Event
from llmb.state_machine.states import State, apply, apply_cancel_request


@attrs.define(eq=False)
class RunLocks:
    """Locks runs, and takes over what other processes recorded of them.

    ``recording`` is True while records of the sweep are still being created.
    """

    _runner: EffectRunner
    _units: UnitTable
    _transitions: Transitions
    _progress: ProgressReporter
    _recorder: SweepRecorder | None
    recording: bool = False

    def acquire(self) -> Iterator[Event]:
        """Lock the runs that no process drives, and see requests to cancel."""
        yield from self.lock_created()
        for run_id in filter(self._units.is_left, self._runner.runs):
            try:
                requested = self._runner.runs[run_id].record.cancel_requested
                self._units.states[run_id] = apply_cancel_request(self._units.states[run_id], requested)
            except Exception as error:  # noqa: BLE001  # raised after the other runs are done
                yield self._transitions.skip(run_id, error)

    def lock_created(self) -> Iterator[Event]:
        """Lock the runs that no process drives and that have a record, and read what other processes recorded."""
        self.recording = False
        for run_id in filter(self._units.is_left, self._runner.runs):
            run = self._runner.runs[run_id]
            try:
                if run.record.locked:
                    continue
                if self._recorder and not self._recorder.is_created(run_id):
                    self.recording = True
                    continue
                yield from self._catch_up(run_id, run)
            except Exception as error:  # noqa: BLE001  # raised after the other runs are done
                yield self._transitions.skip(run_id, error)
        if self._recorder and not self.recording:
            self._recorder.finish(wait_for_all=False)

    def _catch_up(self, run_id: str, run: DrivenRun) -> Iterator[Event]:
        """Lock the run if possible, and take over what another process recorded."""
        locked = run.record.try_lock()
        before, events = self._units.states[run_id], run.record.new_events()
        for event in events:
            self._units.states[run_id] = apply(self._units.states[run_id], event)
            self._runner.not_submitted.discard(run_id)
        state = self._units.states[run_id]
        if state.attempt != run.logs.attempt or (locked and before.stage != "planned"):
            run.logs.start_attempt(state.attempt)
        elif run.logs.parse_copies():
            self._progress.note_logs(run_id)
        self._transitions.changed |= bool(events) and before != State()
        yield from events
