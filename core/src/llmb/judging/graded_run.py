"""One run of a grade: what was measured in its log, and the objection to a verdict."""

import statistics
from collections.abc import Sequence
from typing import Literal

import attrs

from llmb.analysis.measuring_window import MeasuredWindow
from llmb.analysis.steady_state import MIN_STEPS
from llmb.analysis.verdict import Candidate, Judgement, Repeat
from llmb.parsing.parse_log import ParsedLog

MeasuredOver = Literal["window", "steady_state"]


@attrs.frozen(kw_only=True)
class GradedRepeat:
    """One run of a grade. ``step_time_s`` is the mean over the window, None if the log does not contain the window."""

    path: str
    step_time_s: float | None
    steady_step_time_s: float | None
    left_out: bool


@attrs.frozen(kw_only=True)
class GradedRun:
    """One run: its log, the step time that its metrics are based on, and the objection to a verdict, if any.

    ``early_end`` is why the log may not be of the complete run, although it announces no further steps, or "".
    """

    log: ParsedLog
    name: str
    measured_over: MeasuredOver | None
    window: MeasuredWindow | None
    step_time_s: float | None
    tflops_per_gpu: float | None
    objection: Judgement | None
    early_end: str = ""

    @property
    def candidate(self) -> Candidate:
        """The run as one of the repeats that are judged."""
        repeat = Repeat(window=self.window, steady_state=self.log.steady_state, name=self.name) if self.window else None
        return Candidate(name=self.name, repeat=repeat, objection=self.objection)

    def describe(self, left_out: bool) -> GradedRepeat:
        """Return the run's part of the grade."""
        steady = self.log.steady_state
        return GradedRepeat(
            path=str(self.log.path),
            step_time_s=self.window.step_time_s if self.window else None,
            steady_step_time_s=steady.step_time_s if steady else None,
            left_out=left_out,
        )


def mean_window(windows: Sequence[MeasuredWindow]) -> MeasuredWindow | None:
    """Return the window of one run, or the mean of the windows of several."""
    if len(windows) < 2:
        return windows[0] if windows else None
    times_s = [window.step_time_s for window in windows]
    return attrs.evolve(windows[0], step_time_s=statistics.fmean(times_s), step_time_std_s=statistics.stdev(times_s))


def with_objections_to_copies(runs: Sequence[GradedRun]) -> list[GradedRun]:
    """Return the runs with an objection to each copy of an earlier log, which would narrow the margin for nothing."""
    names: dict[tuple[tuple[float | None, float | None], ...], str] = {}
    checked = []
    for run in runs:
        content = tuple((step.time_s, step.loss) for step in run.log.steps)
        original = names.setdefault(content, run.name) if len(content) >= MIN_STEPS else run.name
        copied = Judgement(verdict="undecided", reason=f"the same log as {original}")
        checked.append(run if original == run.name else attrs.evolve(run, objection=run.objection or copied))
    return checked
