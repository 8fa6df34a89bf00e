"""Grading existing logs against a published configuration, without a cluster."""

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from llmb.analysis.impossible_step_times import explain_impossible_step_time
from llmb.analysis.measuring_window import MeasuredWindow, mean_of_known, summarise
from llmb.analysis.metrics import Metrics
from llmb.analysis.slow_ranks import RankComparison, explain_missing_times
from llmb.analysis.steady_state import SteadyState
from llmb.analysis.verdict import INCOMPARABLE, Judgement, describe_missing_window, find_objection, judge_set
from llmb.judging.grade_notes import describe_log, describe_unmeasured, merge_notes
from llmb.judging.graded_run import GradedRepeat, GradedRun, MeasuredOver, mean_window, with_objections_to_copies
from llmb.judging.incomplete_log import assume_steps, covers_run, measured_over
from llmb.judging.logged_batch import describe_other_batch
from llmb.judging.measure_point import measure_point
from llmb.judging.read_logs import read_run
from llmb.judging.save_grade import RecordedGrade, save_runs, spec_tables
from llmb.parsing.log_ending import LogStatus
from llmb.parsing.parse_log import CHECK_FRAMEWORK, ParsedLog
from llmb.plugins.addresses import address_in
from llmb.plugins.registry import PluginRegistry
from llmb.spec.run_of_log import run_of_point
from llmb.values.errors import Fault, LogError, RecordError
from llmb.values.failure import Failure
from llmb.values.model import proxy_note
from llmb.values.recipe import Point, Recipe, Window
from llmb.values.run_states import Verdict

RECIPE_BATCH = "tokens/s, TFLOP/s and MFU count the recipe's batch, not that of the log"

MAX_NAMED_LOGS = 3
"""The most logs of a directory that an error names."""

SEVERITY: tuple[LogStatus, ...] = ("no_data", "nan", "incomplete", "complete")
"""The status of several logs is the first of these that one of them has."""


@attrs.frozen(kw_only=True)
class Grade:
    """The judgement of one run or of several repeats. The fields are the keys of ``llmb grade --json``.

    ``recipe`` to ``variant`` name the published configuration, with the exact release. With several repeats, ``window``
    is the mean of their windows, with the standard deviation between them, and ``steady_state`` is None. ``window`` and
    ``metrics`` are None if no repeat counts. ``limit`` is the highest ratio that passes; it is not part of the JSON.
    ``runs`` are the ids of the runs that were recorded.
    """

    status: LogStatus
    metrics: Metrics | None
    verdict: Verdict | None
    reason: str
    failure: Failure | None
    steady_state: SteadyState | None
    recipe: str
    gpu_type: str
    dtype: str
    gpus: int
    variant: str | None
    framework: str
    window: MeasuredWindow | None
    measured_over: MeasuredOver | None
    interval: tuple[float, float] | None
    more_repeats: int | None
    repeats: tuple[GradedRepeat, ...]
    notes: tuple[str, ...]
    limit: float
    rank_times: RankComparison | None = None
    runs: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """True if a log has no step, or its run failed."""
        return self.failure is not None or self.status in ("no_data", "nan")

    def as_dict(self) -> dict[str, Any]:
        """Return the object that ``llmb grade --json`` prints."""
        return attrs.asdict(self, filter=lambda field, _value: field.name != "limit") | {
            "metrics": self.metrics.as_dict() if self.metrics else None,
            "steady_state": self.steady_state.as_dict() if self.steady_state else None,
        }


@attrs.frozen(kw_only=True)
class Grader:
    """The published configuration and the settings against which logs are graded.

    ``repeats`` is True if the user stated that each log or directory is a run.
    """

    recipe: Recipe
    point: Point
    registry: PluginRegistry
    window: Window
    tolerance: float
    steps: int | None = None
    repeats: bool = False

    def grade(self, runs: Sequence[Sequence[Path]], *, save: bool = False) -> Grade:
        """Grade one run, or several repeats of it, each given by the logs of its ranks. Raise LogError.

        With ``save``, record them as runs. Raise RecordError or SpecError if that is impossible.
        """
        graded = self._measure_all(runs)
        _check_repeats(graded, directory=runs[0][0], are_repeats=self.repeats)
        judgement = judge_set([each.candidate for each in graded], self._published_s, self.tolerance)
        kept = [each for index, each in enumerate(graded) if index not in judgement.left_out]
        over = next((each.measured_over for each in kept if each.measured_over), None)
        logs = [each.log for each in graded]
        return Grade(
            status=min((log.status for log in logs), key=SEVERITY.index),
            metrics=self._metrics([each for each in kept if each.measured_over == over]) if over else None,
            verdict=judgement.verdict,
            reason=judgement.reason,
            failure=next((log.failure for log in logs if log.failure), None),
            steady_state=logs[0].steady_state if len(logs) == 1 else None,
            recipe=self.recipe.address,
            gpu_type=self.point.gpu_type,
            dtype=self.point.dtype,
            gpus=self.point.gpus,
            variant=self.point.variant,
            framework=logs[0].framework,
            window=mean_window([each.window for each in kept if each.window]),
            measured_over=over,
            interval=judgement.interval,
            more_repeats=judgement.more_repeats,
            repeats=tuple(each.describe(index in judgement.left_out) for index, each in enumerate(graded)),
            notes=(*self._notes(graded, judgement), *self._explain_missing_times(graded, judgement.verdict)),
            limit=1 + self.tolerance,
            rank_times=logs[0].rank_times if len(logs) == 1 else None,
            runs=self._save(graded) if save else (),
        )

    def describe_saved(self, runs: Sequence[Sequence[Path]]) -> list[RecordedGrade]:
        """Return what `grade` records of each run. Raise LogError."""
        return [self._describe_saved(each) for each in self._measure_all(runs)]

    def _save(self, graded: Sequence[GradedRun]) -> tuple[str, ...]:
        """Record graded runs. Return their ids. Raise RecordError or SpecError."""
        for log in (each.log for each in graded):
            if log.framework != self.recipe.framework:
                problem = f"cannot be recorded as a run of {self.recipe.address}: written by {log.framework}"
                expected = f"--recipe with a recipe of {log.framework}, or no --save"
                raise RecordError(Fault(message=problem, file=str(log.path), expected=expected))
            for path in log.paths:
                if not path.is_file():
                    message = "cannot be recorded, because it can be read only once"
                    raise RecordError(Fault(message=message, file=str(path), expected="a file"))
        steps = self.steps or max(self.recipe.steps, *(each.log.series.count for each in graded))
        tables = spec_tables(self._address, self.point, steps, self.window, self.tolerance)
        return save_runs([self._describe_saved(each) for each in graded], tables, self.registry, self.steps)

    def _describe_saved(self, run: GradedRun) -> RecordedGrade:
        judgement = judge_set([attrs.evolve(run, name="the run").candidate], self._published_s, self.tolerance)
        over_steady = ("the metrics are those of the steady state",) if run.measured_over == "steady_state" else ()
        return RecordedGrade(
            run=run,
            completed=run.log.status in ("complete", "incomplete") and not run.log.failure and covers_run(run.log),
            judgement=judgement,
            metrics=self._measure_metrics(run.step_time_s, run.tflops_per_gpu) if run.measured_over else None,
            notes=(*self._notes([run], judgement), *over_steady),
        )

    @property
    def _address(self) -> str:
        return address_in(self.recipe.framework, self.recipe.address)

    @property
    def _published_s(self) -> float | None:
        return self.point.baseline.step_time_s if self.point.baseline else None

    def _notes(self, runs: Sequence[GradedRun], judgement: Judgement) -> tuple[str, ...]:
        """Return what a reader of the grade should know: a proxy, and what is special about the logs."""
        of_runs: dict[str, list[str]] = {}
        for run in runs:
            of_log = (*describe_log(run, self._advice), *describe_unmeasured(run, self._published_s))
            other_batch = self._describe_other_batch(run.log)
            notes = (other_batch, RECIPE_BATCH if other_batch and run.measured_over else "", *of_log)
            of_runs[run.name] = [note for note in notes if note and note not in judgement.reason]
        proxy = proxy_note(self.point.model, self.recipe.published_model(self.point))
        return tuple(filter(None, (proxy, *merge_notes(of_runs))))

    @property
    def _advice(self) -> str:
        """Advice on logs that are graded as those of the ranks of one run."""
        return f"if each log is a run, name each log {'instead of its directory' if self.repeats else 'with --repeats'}"

    def _explain_missing_times(self, graded: Sequence[GradedRun], verdict: Verdict | None) -> list[str]:
        """Return how to compare the ranks of one run that was measured."""
        if len(graded) > 1 or not graded[0].measured_over:
            return []
        log = graded[0].log
        setting = self.registry.framework(log.framework).rank_times_setting
        return [*filter(None, [explain_missing_times(log.rank_times, self.point.gpus, verdict, setting)])]

    def _measure_all(self, runs: Sequence[Sequence[Path]]) -> list[GradedRun]:
        names = [f"repeat {number}" for number in range(1, len(runs) + 1)] if len(runs) > 1 else ["the run"]
        return with_objections_to_copies([self._measure(paths, name) for paths, name in zip(runs, names, strict=True)])

    def _measure(self, paths: Sequence[Path], name: str) -> GradedRun:
        """Read a run, measure it over its window or else over its steady state, and find objections to a verdict."""
        graded_run = partial(run_of_point, self._address, self.point, self.registry)
        log = read_run(paths, self.recipe.framework, self.registry, self.window, self.steps, graded_run)
        early_end = ""
        if log.framework == self.recipe.framework and log.steps:
            log, early_end = assume_steps(log, self.recipe.steps)
        steady, summary, over = log.steady_state, log.summary, measured_over(log)
        if over == "steady_state" and steady:
            summary = attrs.evolve(summarise(log.steps, (steady.first, steady.last)), step_time_s=steady.step_time_s)
        metrics = self._measure_metrics(summary.step_time_s, summary.tflops_per_gpu) if over else None
        step_time_s = metrics.step_time_s if metrics else None
        window = log.summary.measured(step_time_s) if over == "window" else None
        return GradedRun(
            log=log,
            name=name,
            measured_over=over if step_time_s is not None else None,
            window=window,
            step_time_s=step_time_s,
            tflops_per_gpu=summary.tflops_per_gpu,
            early_end=early_end,
            objection=self._find_objection(log, window, metrics, early_end),
        )

    def _find_objection(
        self, log: ParsedLog, window: MeasuredWindow | None, metrics: Metrics | None, early_end: str
    ) -> Judgement | None:
        if log.no_step:
            failed = f"no {log.framework} steps found, and the run failed"
            reason = f"{failed}: {log.failure.cause}" if log.failure else log.no_step
            reason = f"the log {reason}" if reason.startswith("is ") else reason
            reason = reason.replace(CHECK_FRAMEWORK, ", and no other installed framework recognises the log")
            return Judgement(verdict="undecided" if self._published_s else None, reason=reason)
        if log.framework != self.recipe.framework:
            reason = f"written by {log.framework}; the recipe is for {self.recipe.framework}"
            return Judgement(verdict=None, reason=reason)
        missing = early_end
        if window is None and not early_end:
            missing = describe_missing_window(log.summary, log.steps, log.steady_state, self._published_s)
        return find_objection(
            published=self._published_s is not None,
            completed=log.failure is None and (covers_run(log) or bool(early_end)),
            cause=log.failure.cause if log.failure else log.reason or "",
            loss_nan=log.status == "nan",
            missing_window=missing,
            invalid_step_time=self._explain_invalid_step_time(log, metrics),
        )

    def _explain_invalid_step_time(self, log: ParsedLog, metrics: Metrics | None) -> str:
        """Return why the step time of a log is not that of the configuration, or ""."""
        if log.disagreement:
            return f"{log.disagreement}; {self._advice}"
        other_batch = self._describe_other_batch(log)
        return f"{INCOMPARABLE}: {other_batch}" if other_batch else explain_impossible_step_time(metrics)

    def _describe_other_batch(self, log: ParsedLog) -> str:
        """Return why the steps of a log are not those of the configuration, and the variants that fit, or ""."""
        other = describe_other_batch(log.steps, self.point)
        place = (self.point.gpu_type, self.point.dtype, self.point.gpus)
        points = [each for each in self.recipe.points if (each.gpu_type, each.dtype, each.gpus) == place]
        fitting = [each.variant for each in points if each.variant and not describe_other_batch(log.steps, each)]
        return f"{other}; --variant {' or '.join(fitting)} has this batch" if other and fitting else other

    def _metrics(self, runs: Sequence[GradedRun]) -> Metrics:
        """Return the metrics of the mean step time of runs that were measured in the same way."""
        step_time_s = mean_of_known(run.step_time_s for run in runs)
        return self._measure_metrics(step_time_s, mean_of_known(run.tflops_per_gpu for run in runs))

    def _measure_metrics(self, step_time_s: float | None, tflops_per_gpu: float | None) -> Metrics:
        return measure_point(self.recipe, self.point, self.registry, step_time_s, tflops_per_gpu)


def _check_repeats(runs: Sequence[GradedRun], *, directory: Path, are_repeats: bool) -> None:
    """Raise LogError if the only run that is named as a repeat is a directory of several logs."""
    logs = runs[0].log.paths
    if not are_repeats or len(runs) > 1 or len(logs) < 2:
        return
    named = shlex.join(map(str, logs[:MAX_NAMED_LOGS])) + (" ..." if len(logs) > MAX_NAMED_LOGS else "")
    message = f"{len(logs)} logs in a directory are those of one run, but --repeats needs several runs"
    expected = f"`--repeats {named}`, or no --repeats"
    raise LogError(Fault(message=message, file=str(directory), expected=expected))
