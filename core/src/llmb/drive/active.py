"""A run that is being driven: its state, its logs, and what has been read of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import attrs

from llmb.analysis.valid_range import STEP_TIME_S, possible
from llmb.drive.events import Progress
from llmb.drive.record import RunRecord
from llmb.hookspecs import FrameworkHooks, SchedulerHooks
from llmb.logs.last_steps import find_last_steps
from llmb.logs.read_blocks import blocks_of
from llmb.logs.series import StepSeries
from llmb.planning import RunPlan
from llmb.plugins.peak_flops import measure_run
from llmb.values.errors import PluginError
from llmb.values.job_status import END_STATES, JobHandle, RunState
from llmb.values.run import Run
from llmb.values.steps import LogParser, Notice, Step

TASK_LOG = "preparation.log"
RECENT_STEPS = 20
STEPS_TO_BELIEVE = 4  # the times of the first ones are off in both directions: compilation, asynchronous dispatch


@attrs.frozen
class LogFile:
    """One log on the target and the name of its copy in the record."""

    phase: str
    path: str

    @property
    def copy(self) -> str:
        """Its name under the record's ``logs``."""
        return PurePosixPath(self.path).name


class ActiveRun:
    """Follows one run. What it knows is on disk before it is believed; a second one can be made at any time."""

    def __init__(
        self, planned: RunPlan, record: RunRecord, framework: FrameworkHooks[Any], scheduler: SchedulerHooks[Any]
    ) -> None:
        self.planned = planned
        self.record = record
        self.peak_flops: float | None = None
        """Dense peak of one GPU in FLOP/s, once its driver knows it; for people who watch."""
        self._framework = framework
        self._scheduler = scheduler
        self._take_over()
        self._read_anew()

    def _take_over(self) -> None:
        known = self.record.state()
        self.state: RunState = known["state"]
        self.job_id: str | None = known.get("job_id")
        self.attempt: int = known.get("attempt", 0)
        self.task: str | None = known.get("task")
        """The key of the shared task that it waits for, or waited for last."""

    def _read_anew(self) -> None:
        """Parse the copies of this attempt's logs from their start: a parser's state need not be kept anywhere."""
        self._parser: LogParser | None = self._framework.parse_log(run=self.run)
        self.series = StepSeries()
        self._messages = self._scheduler.parse_log(run=self.run)
        self.unread = ""
        """Why the logs are read no further, where a parser failed; they are kept all the same."""
        self.messages: list[Notice] = []
        """What the scheduler itself wrote into this attempt's logs."""
        self.phase = ""
        self._parsed: dict[str, int] = {}
        self._parse_copies()

    def catch_up(self, *, anew: bool = False) -> bool:
        """Take over what the record says, as another process wrote it; true where that is news.

        With ``anew`` the logs are parsed from their start again, since this process drives the run from here on.
        """
        before = self.state, self.attempt, dict(self._parsed)
        self._take_over()
        if anew or self.attempt != before[1]:
            self._read_anew()
        else:
            self._parse_copies()
        return before != (self.state, self.attempt, self._parsed)

    def _parse_copies(self) -> None:
        for log in self.logs:
            for block in blocks_of(self.record.logs / log.copy, self._parsed.get(log.copy, 0)):
                self._parse(log, block)

    @property
    def run(self) -> Run[Any]:
        """What is run."""
        return self.planned.run

    @property
    def ended(self) -> bool:
        """Whether its state is final."""
        return self.state in END_STATES

    @property
    def ticket(self) -> JobHandle:
        """By which its scheduler knows it."""
        return JobHandle(id=self.run.id, directory=self.planned.script.directory, job_id=self.job_id)

    @property
    def logs(self) -> tuple[LogFile, ...]:
        """The logs of the current attempt, in the order of the phases."""
        return tuple(self._log_files())

    def _log_files(self) -> Iterator[LogFile]:
        for phase, paths in self.planned.script.logs.items():
            yield from (LogFile(phase, path.replace("{attempt}", str(self.attempt))) for path in paths)

    def offsets(self) -> dict[str, int]:
        """Where to read on, for each log on the target."""
        return {log.path: self.record.log_size(log.copy) for log in self.logs}

    def enter(self, state: RunState, **more: Any) -> bool:
        """Record a new state before it is true here; false where nothing changes."""
        news = {key: value for key, value in more.items() if value is not None}
        if state == self.state and all(getattr(self, key, value) == value for key, value in news.items()):
            return False
        self.record.add_event(state=state, **news)
        self.state = state
        self.job_id = news.get("job_id", self.job_id)
        self.task = news.get("task", self.task)
        return True

    def start_attempt(self, attempt: int) -> None:
        """The scheduler started the job again: its logs are new files, and only they count."""
        if attempt != self.attempt:
            self.record.add_event(attempt=attempt)
            self.attempt = attempt
            self._read_anew()

    def add_log(self, path: str, data: bytes) -> None:
        """Keep new bytes of a log and parse them."""
        log = next(each for each in self.logs if each.path == path)
        self.record.append_log(log.copy, data)
        self._parse(log, data)

    def keep_task_log(self, text: str) -> None:
        """Keep the end of the log of a shared task that failed, and this run with it."""
        if text and not self.record.log_size(TASK_LOG):
            self.record.append_log(TASK_LOG, text.encode())

    def _parse(self, log: LogFile, data: bytes) -> None:
        self._parsed[log.copy] = self._parsed.get(log.copy, 0) + len(data)
        measured = {phase.name: phase.measured for phase in self.planned.job.phases}
        if log.phase in measured:
            self.phase = log.phase
        if measured.get(log.phase) and self._parser:
            with self._reading():
                self._add(self._parser, self._parser.feed(data, log.copy))
        if self._messages:
            with self._reading_messages():
                self._note(self._messages.feed(data, log.copy))

    def _note(self, found: Iterable[Step | Notice]) -> None:
        self.messages += [each for each in found if isinstance(each, Notice)]

    def _add(self, parser: LogParser, found: Iterable[Step | Notice]) -> None:
        self.series.add(found)
        self.series.first_step = parser.first_step  # it may be known by now

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """A parser that failed is asked no more; what it has found can be read."""
        try:
            yield
        except PluginError as error:
            self._parser, self.unread = None, self.unread or str(error)
            with suppress(PluginError):
                self.series.read_all()

    @contextmanager
    def _reading_messages(self) -> Iterator[None]:
        try:
            yield
        except PluginError as error:
            self._messages, self.unread = None, self.unread or str(error)

    def close_logs(self) -> None:
        """The job has ended: a last line without an end counts as well, and all steps are wanted now."""
        with self._reading():
            if self._parser:
                self._add(self._parser, self._parser.close())
            self.series.read_all()
        if self._messages:
            with self._reading_messages():
                self._note(self._messages.close())

    def superseded_until(self) -> dict[Path, int]:
        """Up to which byte of a log's copy the run went on after what it tells there; of logs without steps nothing."""
        measured = {phase.name for phase in self.planned.job.phases if phase.measured}
        copies = [self.record.logs / log.copy for log in self.logs if log.phase in measured]
        parse_log = partial(self._framework.parse_log, run=self.run)
        with self._reading():
            return {copy: find_last_steps(copy, parse_log) for copy in copies}
        return {}

    def progress(self, detail: str = "") -> Progress:
        """How the run stands, for people."""
        with self._reading():
            return self._progress(detail)
        return self._progress(detail)  # without what could not be read

    def _progress(self, detail: str) -> Progress:
        step = self.series.last_step
        left = self._time_left(step) if self.state == "running" else None
        return Progress(
            run_id=self.run.id,
            name=self.run.name,
            state=self.state,
            phase=self.phase,
            step=self.series.count if step else None,
            steps=self.run.steps,
            step_time_s=step.time_s if step else None,
            mfu=self._mfu(step),
            left_s=left,
            detail=detail or self.unread,
        )

    def _mfu(self, step: Step | None) -> float | None:
        """Of this step alone, as the recipe's publisher states it; null where the step's time cannot be.

        A framework may print a first step before the GPUs are done with it: more than the peak is no figure.
        """
        if step is None or self.peak_flops is None or possible(step.time_s, STEP_TIME_S) is None:
            return None
        mfu = measure_run(self.run, step.time_s, step.tflops_per_gpu, self.peak_flops).mfu
        return mfu if mfu is not None and mfu <= 1 else None

    def _time_left(self, step: Step | None) -> float | None:
        times = (possible(each.time_s, STEP_TIME_S) for each in self.series.steps[-RECENT_STEPS:])
        recent = [time_s for time_s in times if time_s is not None]
        if step is None or len(recent) < STEPS_TO_BELIEVE:
            return None
        return max(0, self.run.steps - self.series.count) * statistics.median(recent)
