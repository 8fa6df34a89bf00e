"""Selecting recorded runs by ids, or by filters such as ``{image=*25.12* since=7d}``."""

from collections.abc import Iterable
from typing import get_args

from llmb.records.index.filters_and_sort_keys import Condition, is_filter, parse_filters, split_filters
from llmb.records.index.list_runs import find_runs, select_records
from llmb.records.result import RunResult, find_run
from llmb.values.errors import Fault, RecordError, SpecError
from llmb.values.run_states import END_STATES, RunState

UNFINISHED = Condition("not ended", ())
UNFINISHED_STATES = tuple(state for state in get_args(RunState) if state not in END_STATES)


def select_runs(texts: str | Iterable[str]) -> list[RunResult]:
    """Return the runs of one or several texts, each run once. Raise RecordError.

    A text has ids or unique prefixes joined by commas, or filters in braces.
    """
    texts = [texts] if isinstance(texts, str) else texts
    return list({run.run_id: run for text in texts for run in _select(text)}.values())


def _select(text: str) -> list[RunResult]:
    if is_filter(text):
        found = find_runs([text]).results()
        if not found:
            raise RecordError(f"no run matches {text}; `llmb runs` lists all runs")
        return found
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise RecordError("no run is named")
    return list(map(find_run, names))


def select_unfinished(text: str) -> list[str]:
    """Return the ids of the runs that have not ended and match filters in braces. Raise RecordError if none does."""
    found = select_records([UNFINISHED, *parse_filters([text])]).run_ids
    if not found:
        raise RecordError(f"no unfinished run matches {text}; `llmb runs` lists all runs")
    return list(found)


def check_cancel_filter(text: str) -> None:
    """Raise SpecError for empty filters in braces, and for filters by values that only ended runs have."""
    filters = split_filters(text)
    if not filters:
        raise SpecError(Fault(message=f"{text} matches every run", expected="a filter such as '{gpus=64}'"))
    for each in filters:
        key, _, value = each.partition("=")
        key = key.removesuffix("!")  # an exclusion, which would match every unfinished run
        if key == "verdict":
            raise SpecError(f"invalid filter {each!r}: a run has a verdict only when it has ended")
        ended = [state for state in value.split(",") if state in END_STATES] if key == "state" else []
        if ended:
            message = f"invalid filter {each!r}: a run that is {ended[0]} cannot be cancelled"
            raise SpecError(Fault(message=message, expected=", ".join(UNFINISHED_STATES)))
