"""Parsing of existing logs with a framework's parser."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import attrs

from llmb.analysis.logs_of_different_runs import describe_disagreement
from llmb.analysis.measuring_window import Summary, outlier_median_s, summarise
from llmb.analysis.slow_ranks import RankComparison, compare_ranks
from llmb.analysis.steady_state import SteadyState, find_steady_state
from llmb.analysis.valid_range import finite_or_none
from llmb.hookspecs import FrameworkHooks
from llmb.logs.failures.commands_in_remedies import fill_commands, names_of_logs, shorten_traceback_command
from llmb.logs.failures.steps_after_error import LastSteps
from llmb.logs.read_blocks import blocks_of
from llmb.logs.steps.rank_steps import RankSteps, has_rank
from llmb.logs.steps.step_series import StepSeries
from llmb.parsing.compressed import explain_unreadable, is_tar, unpacked
from llmb.parsing.file_filter import beginning, experiment, is_binary, sample
from llmb.parsing.log_ending import LogStatus, classify_log_end
from llmb.parsing.select_run import up_to_run
from llmb.plugins.registry import PluginRegistry
from llmb.values.errors import Fault, LlmbError, LogError, PluginError, located
from llmb.values.failure import Failure
from llmb.values.recipe import Window
from llmb.values.run import Run
from llmb.values.steps import Step
from llmb.values.texts.error_text import counted, format_count

CHECK_FRAMEWORK = "; check --framework"
"""Advice that applies unless all installed frameworks were tried."""


@attrs.frozen(kw_only=True)
class ParsedLog:
    """One run in a log, or in the logs of its ranks: status, steps, means over the window, and cause of a failure.

    It is the last one of the ``runs_in_log`` runs, unless the caller selected another. ``steps_requested`` is the
    number of steps in a complete run, or None if the log announces it. ``rank_times`` is None if the logs do not
    contain the step times of several ranks. ``no_step`` is the reason why there is no step, or None if there is one.
    ``disagreement`` is the reason why the logs cannot be those of one run, or "".
    """

    paths: tuple[Path, ...]
    framework: str
    status: LogStatus
    series: StepSeries
    summary: Summary
    failure: Failure | None
    experiment: str
    steps_requested: int | None = None
    no_step: str | None = None
    runs_in_log: int
    rank_times: RankComparison | None = None
    disagreement: str = ""

    @property
    def run(self) -> int:
        """The number of this run in the log, from 1, or 0 if there is no step."""
        return self.series.runs

    @property
    def path(self) -> Path:
        """The path of the first log."""
        return self.paths[0]

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of the run, in the order of their numbers."""
        return self.series.steps

    @property
    def succeeded(self) -> bool:
        """True if the log contains a result: all steps of the window, a step time, and a complete run.

        An incomplete run without a failure also has a result, unless the window is the last step or the caller set the
        number of steps.
        """
        if not self.summary.complete or not self._has_times:
            return False
        has_result = self.summary.window != "last" and self.steps_requested is None and self.failure is None
        return self.status == "complete" or (self.status == "incomplete" and has_result)

    @property
    def reason(self) -> str | None:
        """The reason why the log contains no result, or None if it contains one."""
        if self.succeeded:
            return None
        if self.failure:
            return self.failure.cause
        if self.no_step:
            return self.no_step
        if self.status == "nan":
            return "the loss was NaN"
        return self._too_few_steps if self.status == "incomplete" else self._not_measured

    @property
    def outlier_median_s(self) -> float | None:
        """Median step time in seconds, if the window is a single step that took far longer or shorter; else None."""
        return outlier_median_s(self.steps, self.summary)

    @cached_property
    def steady_state(self) -> SteadyState | None:
        """The steady state, or None if the log has fewer than 8 step times."""
        return find_steady_state(self.steps)

    @property
    def _has_times(self) -> bool:
        return any(step.time_s is not None for step in self.steps)

    @property
    def _too_few_steps(self) -> str:
        total = self.series.total_steps if self.steps_requested is None else self.steps_requested
        done = "incomplete" if total is None else f"{format_count(self.series.count)} of {counted(total, 'step')}"
        missing = self.series.missing_end
        return f"{done}: the log lacks the end of the training, {missing}" if missing else done

    @property
    def _not_measured(self) -> str:
        if not self._has_times:
            return "no step has a time"
        if self.summary.window == "last":
            return "the last step has no time"
        first, last = self.summary.window
        if first == last:
            return f"step {first} is not measured" if self.summary.printed else f"no step {first}"
        return (
            f"steps {first} to {last} are not all measured" if self.summary.printed else f"no step of {first} to {last}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the table that ``llmb parse --json`` prints."""
        return {
            "framework": self.framework,
            "status": self.status,
            "steps": [_step(step) for step in self.series.steps],
            "summary": self.summary.as_dict(),
            "steady_state": steady.as_dict() if (steady := self.steady_state) else None,
            "runs_in_log": self.runs_in_log,
            "failure": attrs.asdict(self.failure) if self.failure else None,
        }


@attrs.frozen(kw_only=True)
class LogReader:
    """Reader of one framework's logs.

    ``window`` is by default that of ``known_run``, else the framework's usual one. ``steps_requested`` is the number of
    steps in a complete log, and ``run`` selects one of several runs in a log, counted from 1. ``known_run`` is the run
    that wrote the logs, if it is known: some parsers need its sizes.
    """

    framework: str
    registry: PluginRegistry
    window: Window | None = None
    steps_requested: int | None = None
    run: int | None = None
    known_run: Run[Any] | None = None

    def __attrs_post_init__(self) -> None:
        """Raise LlmbError for a number that no log can have."""
        faults = [
            Fault(key=key, message=f"invalid value {value}", expected="a positive integer")
            for key, value in (("steps", self.steps_requested), ("run", self.run))
            if value is not None and value < 1
        ]
        first, last = self.window if isinstance(self.window, tuple) else (0, 0)
        if not 0 <= first <= last:
            expected = '"last" or (first, last) from 0 on'
            faults.append(Fault(key="window", message=f"invalid window ({first}, {last})", expected=expected))
        if faults:
            raise LlmbError(*faults)

    def read(self, paths: Sequence[Path]) -> ParsedLog:
        """Read the log of a run, or the logs of its ranks, to their present end.

        Raise LogError if a log is unreadable or does not contain the run, and PluginError if the parser fails.
        """
        if not paths:
            raise LogError("no log is named")
        name, framework = self.framework, self.registry.framework(self.framework)
        with _naming_the_log(paths), ExitStack() as stack:
            plain = {path: stack.enter_context(unpacked(path)) for path in paths}
            for path, text in plain.items():
                if is_tar(begin := beginning(text)):
                    raise LogError(Fault(message=str(explain_unreadable(begin)), file=str(path)))
            series, last_steps, ranks = _read_steps(framework, plain, self.known_run)
            runs = series.runs
            if self.run is not None and 0 < runs != self.run:
                if self.run > runs:
                    message = f"no run {self.run}; the log has {counted(runs, 'run')}"
                    raise LogError(Fault(message=message, file=str(paths[0])))
                new_parser = partial(framework.parse_log, run=None)
                plain = {
                    path: stack.enter_context(up_to_run(text, self.run, new_parser)) for path, text in plain.items()
                }
                series, last_steps, ranks = _read_steps(framework, plain, self.known_run)
            status, failure = classify_log_end(name, self.registry, series, last_steps, self.steps_requested)
            failure = shorten_traceback_command(failure) if failure and len(plain) == 1 else failure
            failure = failure and fill_commands(failure, names_of_logs(name, plain))
            usual_window = self.known_run.window if self.known_run else framework.window
            return ParsedLog(
                paths=tuple(paths),
                framework=name,
                status=status,
                series=series,
                summary=summarise(series.steps, self.window or usual_window),
                failure=failure,
                experiment=experiment(paths[0], framework.log_files),
                steps_requested=self.steps_requested,
                no_step=None if series.steps else _explain(framework, name, plain.values(), broke=failure is not None),
                runs_in_log=runs,
                rank_times=compare_ranks(ranks.by_process(map(str, paths))),
                disagreement=describe_disagreement(ranks.by_log()),
            )


def _read_steps(
    framework: FrameworkHooks[Any], plain: Mapping[Path, Path], run: Run[Any] | None
) -> tuple[StepSeries, dict[Path, LastSteps], RankSteps]:
    """Read the steps of logs, each with the path of its plain text. Return also the last ones and those of ranks."""
    parser, series, last_steps = framework.parse_log(run=run), StepSeries(), dict[Path, LastSteps]()
    ranks, offset = RankSteps(), 0
    for path, text in plain.items():
        last_steps[text], offset = LastSteps(), 0
        for block in _blocks(path, text):
            found = parser.feed(block, str(path))
            series.add(found, source=str(path))
            last_steps[text].add(found, offset)
            if len(plain) > 1 or has_rank(found):
                ranks.add(found, str(path))
            offset += len(block)
    found = parser.close()
    series.add(found)
    series.first_step, series.end_texts = parser.first_step, parser.end_texts  # the parser may know it only now
    for text, last in last_steps.items():
        if not last or len(last_steps) == 1:
            last.add(found, text.stat().st_size if os.path.isfile(text) else offset)
    return series, last_steps, ranks


def _blocks(path: Path, text: Path) -> Iterator[bytes]:
    """Yield the content of a log. Raise LogError if it does not exist or is unreadable."""
    try:
        text.stat()
        yield from blocks_of(text)
    except OSError as error:
        raise LogError(Fault(message=f"cannot be read: {error.strerror}", file=str(path))) from error


@contextmanager
def _naming_the_log(paths: Sequence[Path]) -> Iterator[None]:
    try:
        yield
    except PluginError as error:
        raise PluginError(*located(error.faults, str(paths[0]) if len(paths) == 1 else None)) from error


def _explain(framework: FrameworkHooks[Any], name: str, texts: Iterable[Path], *, broke: bool) -> str:
    """Return the reason why logs have no step, with what the framework itself finds in their beginning."""
    part = next(filter(None, map(sample, texts)), b"")  # of the first text that is not empty
    reason = explain_missing_steps(part, name, broke=broke)
    own = "" if is_binary(part) else framework.explain_missing_steps(lines=part.decode(errors="replace").splitlines())
    return f"{reason}\n  {own}" if own else reason


def explain_missing_steps(part: bytes, name: str, *, broke: bool = False) -> str:
    """Return the reason why a log with this beginning or sample has no step of the framework ``name``.

    ``broke`` means that the log contains a failure, which may have come before the first step.
    """
    if reason := explain_unreadable(part):
        return reason
    if is_binary(part):
        return f"is binary, and not a log of {name}"
    if broke:
        return f"no {name} steps found; failed before the first step, or is the log of another framework"
    return f"no {name} steps found{CHECK_FRAMEWORK}"


def _step(step: Step) -> dict[str, Any]:
    """Return a step as a JSON table: its attributes, then the other printed values. NaN becomes None."""
    named = ("step", "time_s", "loss", "tflops_per_gpu", "tokens_per_s_per_gpu", "mean_of")
    return {name: finite_or_none(getattr(step, name)) for name in named} | {
        name: finite_or_none(value) for name, value in step.other_values.items() if name not in named
    }
