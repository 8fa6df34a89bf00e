"""Submitting jobs in batches, while this process records the answers to the batch before and prepares the next one."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from threading import Thread

from llmb.drive.admit_waiting_runs import BATCH, Admission
from llmb.drive.due_effects import DueEffects
from llmb.drive.effects import EffectRunner
from llmb.drive.transitions import Transitions
from llmb.records.create_records import MORE_RECORDS, SweepRecorder
from llmb.state_machine.events import Event
from llmb.state_machine.observations import UnitObservation
from llmb.state_machine.units import UnitStates
from llmb.values.errors import TargetError, UnknownOutcomeError

DETACH_TIMEOUT_S = 5.0
"""How long Ctrl-C waits for a submission."""


class BatchSubmission:
    """Submits runs and tasks. ``may_have_submitted`` is True if a submission had no certain answer."""

    def __init__(
        self, runner: EffectRunner, transitions: Transitions, admission: Admission, recorder: SweepRecorder | None
    ) -> None:
        self.may_have_submitted = False
        self._runner = runner
        self._transitions = transitions
        self._admission = admission
        self._recorder = recorder

    def submit(self, units: UnitStates, due: DueEffects) -> Iterator[Event]:
        """Submit these units, and then those that are due meanwhile. Raise TargetError."""
        answers: list[UnitObservation] = []
        while units:
            previous, answers = answers, []
            batch = self._start(units, answers)
            try:
                yield from self._prepare_next_batch(previous)
                batch.result()
            except TargetError as error:
                self.may_have_submitted |= isinstance(error, UnknownOutcomeError)
                yield from self._transitions.record(answers)
                raise
            except (GeneratorExit, KeyboardInterrupt):
                batch.wait()  # a later process finds the jobs
                raise
            _, units = due.take(only="submit") or (None, [])
        yield from self._transitions.record(answers)

    def _start(self, units: UnitStates, answers: list[UnitObservation]) -> "Background":
        """Begin to submit a batch of jobs. Each answer is appended to ``answers``, also before an error."""
        self._runner.tasks.add_references()

        def submit() -> None:
            for each in self._runner.submit(units):
                answers.append(each)  # noqa: PERF402  # keeps what was observed before an error

        return Background(submit, threaded=self._admission.more or self._transitions.recording)

    def _prepare_next_batch(self, answers: list[UnitObservation]) -> Iterator[Event]:
        """Record the answers to the previous batch, and that the next runs are ready to be submitted.

        They include those whose records were created since the tick began.
        """
        yield from self._transitions.record(answers)
        yield from self._transitions.lock_created()
        yield from self._admission.admit(BATCH)
        if self._recorder:
            self._recorder.create_more(MORE_RECORDS)


class Background:
    """A call that starts immediately, in a thread if ``threaded``.

    The thread is a daemon, so that Ctrl-C does not wait for a scheduler that does not respond.
    """

    def __init__(self, act: Callable[[], None], *, threaded: bool) -> None:
        self._act = act
        self._future: Future[None] = Future()
        if threaded:
            Thread(target=self._run, name="llmb-background", daemon=True).start()
        else:
            self._run()

    def wait(self) -> None:
        """Wait for the call to end, but not longer than a user waits after Ctrl-C. Raise nothing."""
        wait([self._future], timeout=DETACH_TIMEOUT_S)

    def result(self) -> None:
        """Wait for the call to end. Raise what it raised."""
        self._future.result()

    def _run(self) -> None:
        try:
            self._act()
        except BaseException as error:  # noqa: BLE001  # raised by result()
            self._future.set_exception(error)
        else:
            self._future.set_result(None)
