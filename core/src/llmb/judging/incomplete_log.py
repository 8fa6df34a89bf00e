"""Logs of runs that end early, and whether they have the steps that a verdict needs."""

import attrs

from llmb.judging.graded_run import MeasuredOver
from llmb.parsing.parse_log import ParsedLog


def assume_steps(log: ParsedLog, steps: int) -> tuple[ParsedLog, str]:
    """Return the log as that of the recipe's steps if its last step is measured and it does not state their number.

    The text states that it has fewer steps, and what to do. Return a log with at least as many steps, and one that
    shows the end of its training, as it is, and "".
    """
    series, known = log.series, log.steps_requested is not None or log.series.total_steps is not None
    if known or log.summary.window != "last" or log.status != "complete" or series.count >= steps:
        return log, ""
    if series.end_texts or series.has_notice("finished"):
        return log, ""
    ends = f"the log ends with step {log.steps[-1].step}, and the recipe has {steps} steps"
    early_end = f"{ends}; if the run had no more, add --steps {series.count}"
    return attrs.evolve(log, status="incomplete", steps_requested=steps), early_end


def covers_run(log: ParsedLog) -> bool:
    """Check whether the log covers the run, as far as the window needs it: a window of steps may end before the run."""
    return log.status != "incomplete" or (log.summary.window != "last" and log.steps_requested is None)


def measured_over(log: ParsedLog) -> MeasuredOver | None:
    """Return what the metrics of a log are based on."""
    if log.summary.complete and (log.summary.window != "last" or log.status != "incomplete"):
        return "window"
    return "steady_state" if log.steady_state else None
