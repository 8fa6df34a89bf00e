"""Selecting recorded runs by ids, or by filters such as ``{image=*25.12* since=7d}``."""

from __future__ import annotations

from collections.abc import Iterable

from llmb.records.records_index import find_runs
from llmb.records.result import RunResult, find_run
from llmb.values.errors import RecordError


def select_distinct_runs(texts: str | Iterable[str]) -> list[RunResult]:
    """Return the runs of one or several texts, each run once. The texts and the errors are those of `select_runs`."""
    texts = [texts] if isinstance(texts, str) else texts
    return list({run.run_id: run for text in texts for run in select_runs(text)}.values())


def select_runs(text: str) -> list[RunResult]:
    """Return the runs of ids or unique prefixes joined by commas, or of filters in braces. Raise RecordError."""
    if text.startswith("{") and text.endswith("}"):
        found = find_runs(text[1:-1].split()).results()
        if not found:
            raise RecordError(f"no run matches {text}; `llmb runs` lists all runs")
        return found
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise RecordError("no run is named")
    return list({run.run_id: run for run in map(find_run, names)}.values())
