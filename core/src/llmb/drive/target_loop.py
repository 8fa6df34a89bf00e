"""The loop of one target group: each tick observes, records events, and performs the effects that states call for."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from llmb.drive.admit_runs import BATCH, FIRST_BATCH, Admission
from llmb.drive.background import Background
from llmb.drive.effects import EffectRunner
from llmb.drive.poll_and_read_intervals import LOCAL_READ_INTERVAL_S, REMOTE_READ_INTERVAL_S
from llmb.drive.progress import ProgressReporter
from llmb.drive.progress_files import ProgressFiles
from llmb.drive.requeues import note_requeues
from llmb.drive.runs_and_tasks import RunsAndTasks
from llmb.drive.session_run import SessionRun
from llmb.drive.target_errors import ConnectionReporter, with_recovery_hint
from llmb.drive.target_group import TargetGroup
from llmb.drive.transitions import Transitions
from llmb.plugins.registry import PluginRegistry
from llmb.records.create_records import MORE_RECORDS, SweepRecorder
from llmb.records.record import stamp
from llmb.state_machine.decide import EFFECTS, Effect, needs_poll, next_effect
from llmb.state_machine.events import Event, Note, SubmissionUnanswered
from llmb.state_machine.observations import NotSubmitted, UnitObservation
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
        self._submitting = self._may_have_submitted = False
        self._seen_last_step: set[str] = set()
        self._admission = Admission(self.runner, self._transitions)
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
        self._transitions.changed = self.logs_grew = self._submitting = False
        try:
            if self.runner.group.error:
                raise self.runner.group.error
            yield from steps
        except LlmbError as error:
            self._may_have_submitted |= self._submitting and isinstance(error, UnknownOutcomeError)
            yield from self._notes()
            if isinstance(error, TargetError) and self._may_recover(error):
                yield from self._connection.lost(error)
                return
            if isinstance(error, TargetError) and self._recorder and not isinstance(error, BusyError):
                yield from self._fail_unsubmitted(self._recorder, error)
            yield from self._note_unanswered(error)
            left = [each for each in self.units.runs if self.units.states[each].stage != "ended"]
            raise with_recovery_hint(error, (self.units.runs[each].record for each in left)) from error
        yield from self._connection.restored()

    def _may_recover(self, error: TargetError) -> bool:
        """Check whether to wait for a later tick: jobs are there, or only the connection failed after a response."""
        if self.runner.group.error:
            return False
        return self._has_jobs or isinstance(error, UnreachableError | UnknownOutcomeError)

    def _fail_unsubmitted(self, recorder: SweepRecorder, error: TargetError) -> Iterator[Event]:
        """End the runs that this process recorded and certainly did not submit, so that no later process submits them.

        If secrets cannot be removed from the target now, the end of these runs is left to a later process.
        """
        recorder.finish()
        yield from self._transitions.lock_runs()
        certain = [
            unit
            for unit, state in self.units.driven()
            if not state.cancel_requested and self.runner.is_not_submitted(unit.id)
        ]
        yield from self._transitions.record([(unit, NotSubmitted(str(error))) for unit in certain])
        ending = [UnitState(unit, self.units.states[unit.id]) for unit in certain if self.units.is_left(unit.id)]
        with suppress(TargetError):  # the user sees the first error
            yield from self._transitions.record(self.runner.finalize(ending))

    @property
    def _has_jobs(self) -> bool:
        """True if jobs of this group continue without this process, or have results to collect."""
        return self._may_have_submitted or any(
            state.stage in IN_FLIGHT or (state.stage == "ending" and state.submitted)
            for state in self.units.states.values()
        )

    def _poll_and_perform(self) -> Iterator[Event]:
        yield from self._transitions.lock_runs()
        polled = list(self.runner.poll([each for each in self.units.driven_with_tasks() if needs_poll(each.state)]))
        self._progress.note_reasons(polled)
        note_requeues(self.runner, polled)
        yield from self._transitions.record(polled)
        yield from self._admission.admit(FIRST_BATCH)
        yield from self._notes()
        performed: set[tuple[str, Effect]] = set()
        while due := self._due_effect(performed):
            yield from self._perform(*due, performed)
        if self._recorder:
            self._recorder.create_more()  # the records that no submission of this tick began to create
        self.runner.tasks.note_references()
        self.runner.tasks.remove_references()
        yield from self._read_and_report()

    def _read_and_report(self) -> Iterator[Event]:
        yield from self._read_logs()
        yield from self._progress.report(self.units.states, self._admission.without_slot)

    def _due_effect(self, performed: Collection[tuple[str, Effect]]) -> tuple[Effect, UnitStates] | None:
        """Return the next effect and its units, without those for which this tick performed it already."""
        due: dict[Effect, list[UnitState]] = {}
        for each in self.units.driven_with_tasks():
            effect = next_effect(each.unit, each.state)
            if effect and (each.unit.id, effect) not in performed:
                due.setdefault(effect, []).append(each)
        return next(((effect, due[effect]) for effect in EFFECTS if effect in due), None)

    def _perform(self, effect: Effect, units: UnitStates, performed: set[tuple[str, Effect]]) -> Iterator[Event]:
        performed.update((unit.id, effect) for unit, _ in units)
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
                yield from self._submit(units, performed)
                return
        yield from self._admission.admit(FIRST_BATCH)
        yield from self._notes()

    def _submit(self, units: UnitStates, performed: set[tuple[str, Effect]]) -> Iterator[Event]:
        """Submit jobs in batches. While a batch is being submitted, record the answers to the batch before it."""
        answers: list[UnitObservation] = []
        while True:
            previous, answers = answers, []
            submission = self._start_submission(units, answers)
            try:
                yield from self._prepare_next_batch(previous)
                submission.result()
            except TargetError:
                yield from self._transitions.record(answers)
                raise
            except (GeneratorExit, KeyboardInterrupt):
                submission.wait()  # a later process finds the jobs
                raise
            self._submitting = False
            effect, units = self._due_effect(performed) or (None, [])
            if effect != "submit":
                break
            performed.update((unit.id, effect) for unit, _ in units)
        yield from self._transitions.record(answers)
        yield from self._notes()

    def _start_submission(self, units: UnitStates, answers: list[UnitObservation]) -> Background:
        """Begin to submit a batch of jobs. Each answer is appended to ``answers``, also before an error."""
        self.runner.tasks.note_references()
        self._submitting = True

        def submit() -> None:
            for each in self.runner.submit(units):
                answers.append(each)  # noqa: PERF402  # keeps what was observed before an error

        return Background(submit, threaded=self._admission.more or self.recording)

    def _prepare_next_batch(self, answers: list[UnitObservation]) -> Iterator[Event]:
        """Record the answers to the previous batch, and that the next runs are ready to be submitted.

        They include those whose records were created since the tick began.
        """
        yield from self._transitions.record(answers)
        yield from self._transitions.lock_created()
        yield from self._admission.admit(BATCH)
        if self._recorder:
            self._recorder.create_more(MORE_RECORDS)

    def _read_logs(self) -> Iterator[Event]:
        running = (unit.id for unit, state in self.units.driven() if state.stage == "running")
        for run_id, error in self.runner.log_follower.read(running):
            self.logs_grew = True
            if error:
                yield self._transitions.skip(run_id, error)
            else:
                self._progress.note_logs(run_id)
                self._transitions.changed |= self._has_last_step(run_id)

    def _has_last_step(self, run_id: str) -> bool:
        """Check whether the run's last step was just read for the first time, so that its job ends soon."""
        run = self.units.runs[run_id]
        is_news = run_id not in self._seen_last_step and run.logs.series.count >= run.plan.run.steps
        if is_news:
            self._seen_last_step.add(run_id)
        return is_news

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
