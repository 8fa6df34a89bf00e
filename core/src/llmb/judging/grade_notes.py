"""Notes on graded logs: what a reader of the verdict should know."""

from collections.abc import Iterator, Mapping, Sequence

from llmb.analysis.measuring_window import summarise
from llmb.analysis.verdict import describe_missing_window
from llmb.judging.graded_run import GradedRun
from llmb.values.steps import Step


def describe_log(run: GradedRun, advice: str) -> Iterator[str]:
    """Yield the notes on the log of one run. ``advice`` is for logs that may be of several runs."""
    log = run.log
    if log.runs_in_log > 1:
        yield f"{log.path.name} has {log.runs_in_log} runs, and only the last one is graded"
    if log.summary.mean_of > 1:
        yield f"the framework prints means of {log.summary.mean_of} steps"
    if len(log.paths) > 1 and log.rank_times is None and not log.disagreement:
        yield f"slow ranks are unknown: the logs do not have 8 step times of 4 ranks in common; {advice}"
    if run.early_end:
        yield run.early_end
    elif log.status == "incomplete" and not log.failure:
        yield f"the log is incomplete: {log.reason or f'it ends with step {log.steps[-1].step}'}"


def describe_unmeasured(run: GradedRun, published_s: float | None) -> Iterator[str]:
    """Yield why nothing was measured in the log of a run that did not fail, and the window that the log has."""
    log = run.log
    if run.measured_over or run.early_end or log.failure or not log.steps or log.status == "nan":
        return
    yield describe_missing_window(log.summary, log.steps, log.steady_state, published_s)
    if window := _find_window(log.steps):
        yield f"--window {window[0]}:{window[1]} measures the steps of this log"


def _find_window(steps: Sequence[Step]) -> tuple[int, int] | None:
    """Return the steps of a log, without the slow first one, if they are a complete window."""
    window = steps[min(1, len(steps) - 1)].step, steps[-1].step
    summary = summarise(steps, window)
    return window if summary.complete and summary.step_time_s is not None else None


def merge_notes(notes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the notes on runs, by the names of the runs. A note that is not on all of them names its runs."""
    names: dict[str, list[str]] = {}
    for name, of_run in notes.items():
        for note in dict.fromkeys(of_run):
            names.setdefault(note, []).append(name)
    return [note if len(runs) == len(notes) else f"{', '.join(runs)}: {note}" for note, runs in names.items()]
