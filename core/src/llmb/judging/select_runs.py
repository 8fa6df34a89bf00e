"""Selecting recorded runs by ids, or by filters such as ``{image=*25.12* since=7d}``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, get_args

from llmb.drive.record import RunRecord, runs_folder
from llmb.drive.records_index import list_runs
from llmb.drive.result import RunResult, find_run
from llmb.values.error_text import nearest_name
from llmb.values.errors import Fault, RecordError, SpecError
from llmb.values.job_status import RunState, Verdict

FILTER_KEYS = ("recipe", "image", "target", "gpu_type", "dtype", "gpus", "state", "verdict", "since", "until")
CHOICES = {"state": get_args(RunState), "verdict": get_args(Verdict)}
AGE = re.compile(r"(\d+)([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

Predicate = Callable[[RunResult], bool]


def select_runs(text: str) -> list[RunResult]:
    """Return the runs of ids or unique prefixes joined by commas, or of filters in braces. Raise RecordError."""
    if text.startswith("{") and text.endswith("}"):
        found = filter_runs(text[1:-1].split())
        if not found:
            raise RecordError(f"no run matches {text}; `llmb runs` lists all runs")
        return found
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise RecordError("no run is named")
    return list({run.run_id: run for run in map(find_run, names)}.values())


def filter_runs(filters: Sequence[str]) -> list[RunResult]:
    """Return the recorded runs that match every ``key=value``, oldest first. Raise SpecError for an invalid filter."""
    predicates = [_predicate(each) for each in filters]
    return [run for run in list_runs() if all(predicate(run) for predicate in predicates)]


def _predicate(text: str) -> Predicate:
    key, equals, value = text.partition("=")
    if key not in FILTER_KEYS or not equals:
        nearest = nearest_name(key, FILTER_KEYS)
        message = f"unknown filter {text!r}" if equals else f"invalid filter {text!r}; expected key=value"
        raise SpecError(Fault(message=message, expected=", ".join(FILTER_KEYS), nearest=nearest))
    if key in ("since", "until"):
        moment = _parse_moment(key, value)
        return lambda run: bool(run.created) and (_created(run) >= moment) == (key == "since")
    if key == "gpus":
        ranges = [_parse_range(each) for each in value.split(",")]
        return lambda run: run.gpus is not None and any(low <= run.gpus <= high for low, high in ranges)
    wanted = value.split(",")
    for each in wanted:
        if key in CHOICES and each not in CHOICES[key]:
            nearest = nearest_name(each, CHOICES[key])
            raise SpecError(Fault(message=f"unknown {key} {each!r}", expected=", ".join(CHOICES[key]), nearest=nearest))
    return lambda run: any(fnmatchcase(_value(run, key), each) for each in wanted)


def _value(run: RunResult, key: str) -> str:
    """Return the value of a run, which for images and targets is only in its spec."""
    if key not in ("image", "target"):
        return str(getattr(run, key) or "")
    spec: dict[str, Any] = RunRecord(runs_folder() / run.run_id).spec()
    table, name = ("workload", "image") if key == "image" else ("target", "name")
    return str(spec.get(table, {}).get(name, ""))


def _parse_range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("..")
    if not low.isdecimal() or not (high or low).isdecimal():
        raise SpecError(Fault(message=f"invalid gpus {text!r}", expected="a number such as 64, or 64..512"))
    return int(low), int(high or low)


def _parse_moment(key: str, text: str) -> datetime:
    if match := AGE.fullmatch(text):
        return datetime.now(UTC) - timedelta(**{UNITS[match[2]]: int(match[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SpecError(Fault(message=f"invalid {key} {text!r}", expected="7d or 2026-11-01")) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _created(run: RunResult) -> datetime:
    moment = datetime.fromisoformat(run.created or "")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
