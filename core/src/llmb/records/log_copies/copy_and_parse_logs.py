"""The logs of one run: their copies in the record, and what the parsers find in them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import attrs

from llmb.analysis.metrics import compute_run_metrics
from llmb.analysis.time_left import estimate_duration_s, find_limit_step
from llmb.analysis.valid_range import STEP_TIME_S, possible
from llmb.files import file_exists, open_regular
from llmb.hookspecs import FrameworkHooks, SchedulerHooks
from llmb.logs.failures.steps_after_error import find_last_steps
from llmb.logs.read_blocks import blocks_of
from llmb.logs.steps.rank_steps import RankSteps
from llmb.logs.steps.step_series import StepSeries
from llmb.plan_runs import RunPlan
from llmb.records.log_copies.mask_secrets import SecretMask, known_secrets
from llmb.records.record import RunRecord
from llmb.state_machine.events import Progress
from llmb.values.errors import PluginError, RecordError
from llmb.values.run_states import RunState
from llmb.values.steps import LogParser, Notice, Step

Source = Literal["framework", "scheduler"]
"""The plugin whose parser reads a log."""


@attrs.frozen
class LogFile:
    """A log on the target: the phase that writes it, and its path."""

    phase: str
    path: str

    @property
    def copy(self) -> str:
        """The file name of its copy in the record's ``logs`` folder."""
        return PurePosixPath(self.path).name


class LogCopies:
    """The logs of a run's current attempt. The copies on disk are the truth: parsers start again from them.

    ``peak_flops`` is the dense peak of one GPU in FLOP/s, if known.
    """

    def __init__(
        self,
        plan: RunPlan,
        record: RunRecord,
        framework: FrameworkHooks[Any],
        scheduler: SchedulerHooks[Any],
        *,
        peak_flops: float | None = None,
    ) -> None:
        self._plan = plan
        self._measured = {phase.name: phase.measured for phase in plan.job.phases}
        self._sidecars = frozenset(sidecar.name for sidecar in plan.job.sidecars)
        self._record = record
        self._framework = framework
        self._scheduler = scheduler
        self._peak_flops = peak_flops
        self.start_attempt(0)

    def _mask_of(self, log: LogFile) -> SecretMask:
        """Return the mask of a log, which keeps what it expects in the next block."""
        if log.path not in self._masks:
            self._masks[log.path] = SecretMask(known_secrets(self._plan.secrets))
        return self._masks[log.path]

    def start_attempt(self, attempt: int) -> None:
        """Start with this attempt's logs. Parse the copies that exist."""
        self.attempt = attempt
        self.files = tuple(
            LogFile(phase, path.replace("{attempt}", str(attempt)))
            for phase, paths in self._plan.script.logs.items()
            for path in paths
        )
        """The logs of this attempt, in the order of the phases."""
        self._masks: dict[str, SecretMask] = {}
        self._parsers: dict[Source, LogParser | None] = {}  # made when the first bytes arrive
        self.series = StepSeries()
        self.rank_steps = RankSteps()
        self.parser_error = ""
        """Why a parser stopped. The copies are complete nevertheless."""
        self.scheduler_notices: list[Notice] = []
        self.phase = ""
        self._parsed: dict[str, int] = {}
        self.parse_copies()

    def parse_copies(self) -> bool:
        """Parse what the copies gained since the last call. Return True if they gained something. Raise RecordError."""
        before = dict(self._parsed)
        try:
            for log in self.files if file_exists(self._record.logs) else ():  # a new run has none
                copy, parsed = self._record.logs / log.copy, self._parsed.get(log.copy, 0)
                for block in blocks_of(copy, parsed, opener=open_regular):
                    self._parse(log, block)
        except OSError as error:
            reason = f"{error.strerror}; fix this, then resume with `llmb attach {self._record.run_id}`"
            raise RecordError(f"cannot read the copies of logs in {self._record.logs}: {reason}") from error
        return before != self._parsed

    @property
    def copies(self) -> list[Path]:
        """The copies of all logs except those of sidecars, the last phase first and the scheduler's own log last."""
        order = {phase: number for number, phase in enumerate(self._measured)}
        files = [log for log in self.files if log.phase not in self._sidecars]
        latest_first = sorted(files, key=lambda log: -order.get(log.phase, -1))
        return [self._record.logs / log.copy for log in latest_first]

    @property
    def measured_paths(self) -> list[str]:
        """The logs of the measured phases on the target."""
        return [log.path for log in self.files if self._measured.get(log.phase)]

    def sidecar_copy(self, name: str) -> Path | None:
        """Return the copy of a sidecar's log, or None if the job has no such sidecar."""
        found = (log for log in self.files if log.phase == name and name in self._sidecars)
        return next((self._record.logs / log.copy for log in found), None)

    def offsets(self) -> dict[str, int]:
        """Return the size of each log's copy, which is where to read on, by the log's path on the target."""
        return {log.path: self._record.log_size(log.copy) for log in self.files}

    def add(self, path: str, data: bytes, *, is_last: bool) -> bool:
        """Append new bytes of a log to its copy, with secrets masked, and parse them.

        Unless the bytes are the last of the log, a possible beginning of a secret at their end is left for the next
        call. Return True if the copy has grown. Raise RecordError if the disk is full.
        """
        log = next(each for each in self.files if each.path == path)
        if not (masked := self._mask_of(log).mask(data, is_last=is_last)):
            return False
        self._record.append_log(log.copy, masked)
        self._parse(log, masked)
        return True

    def close(self) -> None:
        """Parse last lines that have no line end. The job is over."""
        self._collect_steps(lambda parser: parser.close())
        self._collect_notices(lambda parser: parser.close())

    def find_scheduler_cause(self) -> str:
        """Return why the scheduler ended this attempt, "" if its logs do not contain that. No more bytes are parsed."""
        self._collect_notices(lambda parser: parser.close())
        return next((notice.kind for notice in self.scheduler_notices), "")

    def superseded_until(self) -> dict[Path, int]:
        """Return the offset in each measured log before which errors have no effect, because steps followed."""
        copies = [self._record.logs / log.copy for log in self.files if self._measured.get(log.phase)]
        parse_log = partial(self._framework.parse_log, run=self._plan.run)
        with self._catch_parser_error():
            return {copy: find_last_steps(copy, parse_log) for copy in copies}
        return {}

    def progress(self, state: RunState, detail: str = "", time_left_s: float | None = None) -> Progress:
        """Return how far the run is. ``time_left_s`` is the time until the time limit of its job, if known."""
        run, step = self._plan.run, None
        with self._catch_parser_error():
            step = self.series.last_step
        is_timed = step and state == "running"
        return Progress(
            run_id=run.id,
            name=run.name,
            state=state,
            phase=self.phase,
            step=self.series.count if step else None,
            steps=run.steps,
            step_time_s=step.time_s if step else None,
            mfu=self._mfu(step),
            left_s=estimate_duration_s(self.series.steps, run.steps - self.series.count) if is_timed else None,
            limit_step=self._limit_step(time_left_s) if is_timed and time_left_s is not None else None,
            detail=": ".join(filter(None, (detail, self.parser_error))),
        )

    def _limit_step(self, time_left_s: float) -> int | None:
        return find_limit_step(self.series.steps, self.series.count, self._plan.run.steps, time_left_s)

    def _parse(self, log: LogFile, data: bytes) -> None:
        self._parsed[log.copy] = self._parsed.get(log.copy, 0) + len(data)
        if log.phase in self._sidecars:
            return
        if log.phase in self._measured:
            self.phase = log.phase
        if self._measured.get(log.phase):
            self._collect_steps(lambda parser: parser.feed(data, log.copy), log.copy)
        self._collect_notices(lambda parser: parser.feed(data, log.copy))

    def _parser(self, source: Source) -> LogParser | None:
        """Return the parser of a plugin, or None if it failed or has none."""
        if source not in self._parsers:
            plugin = self._framework if source == "framework" else self._scheduler
            self._parsers[source] = plugin.parse_log(run=self._plan.run)
        return self._parsers[source]

    def _collect_steps(self, parse: Callable[[LogParser], Iterable[Step | Notice]], log: str | None = None) -> None:
        """Collect what the framework's parser finds in a log, or at the end of all logs (None)."""
        with self._catch_parser_error("framework"):
            if parser := self._parser("framework"):
                items = list(parse(parser))
                self.series.add(items, source=self._sorted_name(log) if log else None)
                if log:
                    self.rank_steps.add(items, log)
                self.series.first_step = parser.first_step  # the parser may know it only now
                self.series.end_texts = parser.end_texts

    def _collect_notices(self, parse: Callable[[LogParser], Iterable[Step | Notice]]) -> None:
        with self._catch_parser_error("scheduler"):
            if parser := self._parser("scheduler"):
                self.scheduler_notices += [each for each in parse(parser) if isinstance(each, Notice)]

    def _sorted_name(self, log: str) -> str:
        """Return a name of a log that sorts later phases first, because their steps replace those of earlier phases."""
        phases, phase = list(self._measured), next(each.phase for each in self.files if each.copy == log)
        return f"{len(phases) - phases.index(phase)} {log}"

    @contextmanager
    def _catch_parser_error(self, source: Source = "framework") -> Iterator[None]:
        """Stop parsing after a parser failed. Steps and notices that were found stay."""
        try:
            yield
        except PluginError as error:
            self._parsers[source], self.parser_error = None, self.parser_error or str(error)

    def _mfu(self, step: Step | None) -> float | None:
        """Return the MFU of one step, or None if it is above 1.

        A framework may print a first step before the GPUs are done with it.
        """
        if step is None or self._peak_flops is None or possible(step.time_s, STEP_TIME_S) is None:
            return None
        mfu = compute_run_metrics(self._plan.run, step.time_s, step.tflops_per_gpu, self._peak_flops).mfu
        return mfu if mfu is not None and mfu <= 1 else None
