"""Progress events: how far each run is."""

import time
from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from llmb.drive.long_pauses import PAUSE_S, is_long_pause
from llmb.drive.session_run import SessionRun
from llmb.state_machine.events import Note, Progress
from llmb.state_machine.observations import UnitObservation
from llmb.state_machine.units import State, Unit, UnitStates
from llmb.values.job_status import JobStatus

SUSPENDED = "suspended by the scheduler"


class ProgressReporter:
    """Yields the progress of runs whose state, detail or logs changed, and once the advice on each job that waits."""

    def __init__(self, runs: Mapping[str, SessionRun], tasks: Mapping[str, Unit]) -> None:
        self._runs = runs
        self._tasks = tasks
        self._reasons: dict[str, str] = {}  # by id of the run or task
        self._advice: dict[str, bool] = {}  # what to do about jobs that wait, and whether it was reported
        self._shown: dict[str, tuple[str, str]] = {}  # state and detail of each run's last progress
        self._limits_s: dict[str, float] = {}  # when the time limits of running jobs end them, by the monotonic clock
        self._steps: dict[str, tuple[int, float]] = {}  # number of steps, and when it last changed
        self._warned: set[str] = set()  # runs whose time limit is too short

    def store_reasons(self, polled: Iterable[UnitObservation]) -> None:
        """Keep the reason for which a job waits, the last output of a running task, or that a job is suspended."""
        for unit, seen in polled:
            if not isinstance(seen, JobStatus):
                continue
            self._note_time_left(unit.id, seen.time_left_s)
            if seen.state in ("pending", "unknown", "running"):
                is_running_run = unit.kind == "run" and seen.state == "running"
                reason = "" if is_running_run else seen.reason
                self._reasons[unit.id] = SUSPENDED if seen.suspended else reason
            if seen.state == "pending" and seen.remedy and not seen.unsatisfiable:
                self._advice.setdefault(f"{unit.name or unit.id} waits ({seen.reason}): {seen.remedy}", False)

    def _note_time_left(self, unit_id: str, time_left_s: float | None) -> None:
        known = self._limits_s.pop(unit_id, None)
        if time_left_s is not None:
            self._limits_s[unit_id] = time.monotonic() + time_left_s
            if known is None:
                self._shown.pop(unit_id, None)

    def mark_logs_grown(self, run_id: str) -> None:
        """Report the run again, because its logs grew."""
        self._shown.pop(run_id, None)

    def report(self, states: Mapping[str, State], held_back: Mapping[str, str]) -> Iterator[Progress | Note]:
        """Yield the progress of the runs that changed since the last call. ``held_back`` has why runs wait.

        Also yield what the user can do about each job that waits, once.
        """
        yield from (Note(text=text) for text, is_reported in self._advice.items() if not is_reported)
        self._advice = dict.fromkeys(self._advice, True)
        for run_id, run in self._runs.items():
            state, detail = states[run_id].run_state, held_back.get(run_id) or self._detail(run_id, states[run_id])
            if self._shown.get(run_id) != (state, detail):
                self._shown[run_id] = state, detail
                progress = run.logs.progress(state, detail, self._time_left_s(run_id))
                yield _without_time_left(progress) if states[run_id].stage == "ending" else progress
                yield from self._warn_of_limit(progress)

    def _time_left_s(self, run_id: str) -> float | None:
        limit_s = self._limits_s.get(run_id)
        return None if limit_s is None else limit_s - time.monotonic()

    def _warn_of_limit(self, progress: Progress) -> Iterator[Note]:
        """Yield once that the time limit is too short for the remaining steps."""
        run_id, step = progress.run_id, progress.limit_step
        if step is None or run_id in self._warned:
            return
        self._warned.add(run_id)
        limit = f"the time limit comes at about step {step} of {progress.steps}"
        text = f"{run_id}: {limit}; for all steps, cancel the run and raise workload.time_limit"
        yield Note(run_id=run_id, text=text)

    def report_copying(self, units: UnitStates) -> Iterator[Progress]:
        """Yield the progress of the runs whose logs are about to be read to their end, which may take long."""
        for unit, state in units:
            if unit.kind == "run" and state.submitted:
                self._shown.pop(unit.id, None)
                yield _without_time_left(self._runs[unit.id].logs.progress(state.run_state, "copying logs"))

    def _detail(self, run_id: str, state: State) -> str:
        if state.stage == "preparing" and state.task in self._tasks:
            return ": ".join(filter(None, (self._tasks[state.task].name, self._reasons.get(state.task))))
        if state.stage in ("ending", "ended"):
            return ""
        attempt = f"attempt {state.attempt}" if state.attempt else ""
        pause = self._describe_pause(run_id) if state.stage == "running" else ""
        return ": ".join(filter(None, (attempt, self._reasons.get(run_id), pause)))

    def _describe_pause(self, run_id: str) -> str:
        """Return for how long a run that trains has printed no step, if that is unusual and its log can be parsed.

        The time is a multiple of `PAUSE_S`, so that the text rarely changes.
        """
        logs, now_s = self._runs[run_id].logs, time.monotonic()
        series = logs.series
        count, since_s = self._steps.get(run_id, (-1, now_s))
        if series.count != count:
            self._steps[run_id] = series.count, now_s
            return ""
        paused_s, is_training = now_s - since_s, 0 < count < self._runs[run_id].plan.run.steps
        if not is_training or logs.parser_error or not is_long_pause(paused_s, series, if_unknown=True):
            return ""
        return f"no new step for {int(paused_s // PAUSE_S * PAUSE_S / 60)} min"


def _without_time_left(progress: Progress) -> Progress:
    """Return the progress of a job that is over."""
    return evolve(progress, left_s=None, limit_step=None)
