"""The loop of one target group: each tick observes, records events, and performs the effects that states call for."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from llmb.drive.admit_waiting_runs import FIRST_BATCH, Admission
from llmb.drive.due_effects import DueEffects
from llmb.drive.effects import EffectRunner
from llmb.drive.poll_read_and_retry_intervals import LOCAL_READ_INTERVAL_S, REMOTE_READ_INTERVAL_S
from llmb.drive.progress import ProgressReporter
from llmb.drive.progress_files import ProgressFiles
from llmb.drive.requeues import note_requeues
from llmb.drive.runs_and_tasks import RunsAndTasks
from llmb.drive.session_run import SessionRun
from llmb.drive.submit_in_batches import BatchSubmission
from llmb.drive.target_errors import ConnectionReporter, with_recovery_hint
from llmb.drive.target_group import TargetGroup
from llmb.drive.transitions import Transitions
from llmb.plugins.registry import PluginRegistry
from llmb.records.create_records import SweepRecorder
from llmb.records.record import stamp
from llmb.state_machine.decide import Effect, needs_poll
from llmb.state_machine.events import Event, Note, SubmissionUnanswered
from llmb.state_machine.observations import NotSubmitted
from llmb.state_machine.units import IN_FLIGHT, UnitState, UnitStates
from llmb.values.errors import BusyError, LlmbError, TargetError, UnknownOutcomeError, UnreachableError


class TargetLoop:
    """Drives the runs of one target group. ``logs_grew`` is True if the last tick found new bytes in a log."""

    def __init__(
        self, group: TargetGroup, runs: Iterable[SessionRun], registry: PluginRegistry, recorder: SweepRecorder | None
    ) -> None:
        self.units = RunsAndTasks(runs)
        self.runner = EffectRunner(group, self.units, registry)
        self.logs_grew = False
        self._recorder = recorder
        self._progress = ProgressReporter(self.units.runs, self.units.task_units)
        self._progress_files = ProgressFiles(self.units.runs)
        self._transitions = Transitions(self.units, self._progress, recorder)
        self._seen_last_step: set[str] = set()
        self._admission = Admission(self.runner, self._transitions)
        self._submission = BatchSubmission(self.runner, self._transitions, self._admission, recorder)
        self._connection = ConnectionReporter(group.name)

    @property
    def changed(self) -> bool:
        """True if the last tick changed a state."""
        return self._transitions.changed

    @property
    def recording(self) -> bool:
        """True while records of the sweep are still being created."""
        return self._transitions.recording

    @property
    def poll_interval_s(self) -> tuple[float, float]:
        """The shortest and the longest pause between two polls."""
        return self.runner.group.scheduler.poll_interval_s

    @property
    def read_interval_s(self) -> float:
        """The pause between two reads of logs that grow."""
        return REMOTE_READ_INTERVAL_S if self.runner.group.remote else LOCAL_READ_INTERVAL_S

    @property
    def running(self) -> bool:
        """True if a job runs whose logs this process reads."""
        return any(state.stage == "running" for _, state in self.units.driven())

    @property
    def awaits_history(self) -> bool:
        """True if a run waits only for the history of its job, so that the next tick comes soon."""
        return any(self.runner.finalizer.is_waiting(unit.id) for unit, _ in self.units.driven())

    @property
    def ended(self) -> bool:
        """True if nothing is left to do."""
        return not self.units.left()

    @property
    def submitted(self) -> bool:
        """True if nothing is left that needs this process, except runs that wait for the jobs of other runs."""
        return all(
            self.units.states[each].stage in (*IN_FLIGHT, "ending") or each in self._admission.without_slot
            for each in self.units.left()
        )

    def tick(self) -> Iterator[Event]:
        """Bring every run forward once, and yield what happens.

        Raise LlmbError if the target does not respond and no job is there, or if a plugin returns an invalid value.
        """
        yield from self._stamped(self._poll_and_perform())

    def read(self) -> Iterator[Event]:
        """Read the logs of running jobs between two ticks, and yield the progress. Raise as `tick` does."""
        yield from self._stamped(self._read_and_report())

    def _stamped(self, steps: Iterator[Event]) -> Iterator[Event]:
        for event in self._with_target_errors(steps):
            stamped = event if event.time else stamp(event)
            self._progress_files.keep(stamped)
            yield stamped
        self._progress_files.write()

    def _with_target_errors(self, steps: Iterator[Event]) -> Iterator[Event]:
        """Yield the events of a tick. An error from which the target may recover is an event, others are raised."""
        self._transitions.changed = self.logs_grew = False
        try:
            if self.runner.group.error:
                raise self.runner.group.error
            yield from steps
        except LlmbError as error:
            yield from self._notes()
            if isinstance(error, TargetError):
                if self._may_recover(error):
                    yield from self._connection.lost(error)
                    return
                if self._recorder and not isinstance(error, BusyError):
                    yield from self._fail_unsubmitted(self._recorder, error)
            yield from self._note_unanswered(error)
            left = [each for each in self.units.runs if self.units.states[each].stage != "ended"]
            raise with_recovery_hint(error, (self.units.runs[each].record for each in left)) from error
        yield from self._connection.restored()

    def _may_recover(self, error: TargetError) -> bool:
        """Check whether to wait for a later tick: jobs are there, or only the connection failed after a response.

        Jobs are there if they continue without this process, or have results to collect.
        """
        if self.runner.group.error:
            return False
        has_jobs = self._submission.may_have_submitted or any(
            state.stage in IN_FLIGHT or (state.stage == "ending" and state.submitted)
            for state in self.units.states.values()
        )
        return has_jobs or isinstance(error, UnreachableError | UnknownOutcomeError)

    def _fail_unsubmitted(self, recorder: SweepRecorder, error: TargetError) -> Iterator[Event]:
        """End the runs that this process recorded and certainly did not submit, so that no later process submits them.

        If secrets cannot be removed from the target now, the end of these runs is left to a later process.
        """
        recorder.finish()
        yield from self._transitions.lock_runs()
        certain = [
            unit
            for unit, state in self.units.driven()
            if not state.cancel_requested_ns and self.runner.is_not_submitted(unit.id)
        ]
        yield from self._transitions.record([(unit, NotSubmitted(str(error))) for unit in certain])
        ending = [UnitState(unit, self.units.states[unit.id]) for unit in certain if self.units.is_left(unit.id)]
        with suppress(TargetError):  # the user sees the first error
            yield from self._transitions.record(self.runner.finalize(ending))

    def _poll_and_perform(self) -> Iterator[Event]:
        yield from self._transitions.lock_runs()
        polled = list(self.runner.poll([each for each in self.units.driven_with_tasks() if needs_poll(each.state)]))
        self._progress.store_reasons(polled)
        note_requeues(self.runner, polled)
        yield from self._transitions.record(polled)
        yield from self._admission.admit(FIRST_BATCH)
        yield from self._notes()
        due = DueEffects(self.units)
        while taken := due.take():
            yield from self._perform(*taken, due)
        if self._recorder:
            self._recorder.create_more()  # the records that no submission of this tick began to create
        self.runner.tasks.add_references()
        self.runner.tasks.remove_references()
        yield from self._read_and_report()

    def _read_and_report(self) -> Iterator[Event]:
        yield from self._read_logs()
        yield from self._progress.report(self.units.states, self._admission.without_slot)

    def _perform(self, effect: Effect, units: UnitStates, due: DueEffects) -> Iterator[Event]:
        match effect:
            case "cancel":
                yield from self._transitions.record(self.runner.cancel(units))
            case "drop_references":
                yield from self._transitions.record(self.runner.tasks.drop_references(units))
            case "finalize":
                new = [each for each in units if self.runner.finalizer.is_new(each.unit.id)]
                yield from self._progress.report_copying(new)
                yield from self._transitions.record(self.runner.finalize(units))
            case "check":
                yield from self._transitions.record(self.runner.tasks.check(units))
            case "submit":
                yield from self._submission.submit(units, due)
        if effect != "submit":  # which admits runs itself
            yield from self._admission.admit(FIRST_BATCH)
        yield from self._notes()

    def _read_logs(self) -> Iterator[Event]:
        running = (unit.id for unit, state in self.units.driven() if state.stage == "running")
        for run_id, error in self.runner.log_follower.read(running):
            self.logs_grew = True
            if error:
                yield self._transitions.skip(run_id, error)
            else:
                self._progress.mark_logs_grown(run_id)
                run = self.units.runs[run_id]
                if run.logs.series.count >= run.plan.run.steps and run_id not in self._seen_last_step:
                    self._seen_last_step.add(run_id)
                    self._transitions.changed = True  # the job ends soon

    def _notes(self) -> Iterator[Event]:
        while self.runner.notes:
            yield Note(text=self.runner.notes.pop(0))

    def _note_unanswered(self, error: LlmbError) -> Iterator[Event]:
        """Record why runs that are being submitted have no answer."""
        submitting = [unit.id for unit, state in self.units.driven() if state.stage == "submitting"]
        events = [stamp(SubmissionUnanswered(run_id=each, reason=str(error))) for each in submitting]
        failed = self._transitions.commit(events)
        yield from (event for event in events if event.run_id not in failed)

    def unlock(self) -> None:
        """Let other processes drive the runs."""
        self._transitions.close()
        self._progress_files.write(now=True)
        for run in self.units.runs.values():
            run.record.unlock()
