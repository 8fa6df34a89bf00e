"""Filters of recorded runs, such as ``image=*25.12*`` or ``since=7d``, as conditions on the columns of the index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import get_args

import attrs

from llmb.values.error_text import nearest_name
from llmb.values.errors import Fault, SpecError
from llmb.values.job_status import RunState, Verdict

FILTER_KEYS = ("recipe", "image", "target", "gpu_type", "dtype", "gpus", "state", "verdict", "since", "until")
CHOICES = {"state": get_args(RunState), "verdict": get_args(Verdict)}
AGE = re.compile(r"(\d+)([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

SORT_KEYS = ("created", "step_time", "ratio", "mfu", "gpus")
"""Columns by which runs can be sorted."""


@attrs.frozen
class Condition:
    """A condition in SQL, with the values of its question marks."""

    sql: str
    values: tuple[str | int, ...]


def parse_filters(filters: Sequence[str]) -> list[Condition]:
    """Return the conditions of ``key=value`` texts. Raise SpecError for an invalid filter."""
    return [_parse_filter(each) for each in filters]


def has_repeats_of(first_repeats: Sequence[str]) -> Condition:
    """Return the condition that a run is one of the repeats of these runs."""
    return Condition(f"first_repeat in ({', '.join('?' * len(first_repeats))})", tuple(first_repeats))


def check_sort_key(key: str) -> None:
    """Raise SpecError for a key by which runs cannot be sorted."""
    if key not in SORT_KEYS:
        nearest = nearest_name(key, SORT_KEYS)
        raise SpecError(Fault(message=f"unknown sort key {key!r}", expected=", ".join(SORT_KEYS), nearest=nearest))


def _parse_filter(text: str) -> Condition:
    key, equals, value = text.partition("=")
    if key not in FILTER_KEYS or not equals:
        nearest = nearest_name(key, FILTER_KEYS)
        message = f"unknown filter {text!r}" if equals else f"invalid filter {text!r}; expected key=value"
        raise SpecError(Fault(message=message, expected=", ".join(FILTER_KEYS), nearest=nearest))
    if key in ("since", "until"):
        limits = "created >= ?" if key == "since" else "created < ? and created <> ''"
        return Condition(limits, (_parse_moment(key, value),))
    wanted = value.split(",")
    if key == "gpus":
        ranges = [_parse_range(each) for each in wanted]
        return _any_of(["gpus between ? and ?"] * len(ranges), [limit for each in ranges for limit in each])
    for each in wanted:
        if key in CHOICES and each not in CHOICES[key]:
            nearest = nearest_name(each, CHOICES[key])
            raise SpecError(Fault(message=f"unknown {key} {each!r}", expected=", ".join(CHOICES[key]), nearest=nearest))
    return _any_of([f"{key} glob ?"] * len(wanted), wanted)


def _any_of(conditions: Sequence[str], values: Sequence[str | int]) -> Condition:
    return Condition(f"({' or '.join(conditions)})", tuple(values))


def _parse_range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("..")
    if not low.isdecimal() or not (high or low).isdecimal():
        raise SpecError(Fault(message=f"invalid gpus {text!r}", expected="a number such as 64, or 64..512"))
    return int(low), int(high or low)


def _parse_moment(key: str, text: str) -> str:
    """Return a time as records contain it."""
    if match := AGE.fullmatch(text):
        return _as_text(datetime.now(UTC) - timedelta(**{UNITS[match[2]]: int(match[1])}))
    moment = as_sortable_time(text)
    if not moment:
        raise SpecError(Fault(message=f"invalid {key} {text!r}", expected="7d or 2026-11-01"))
    return moment


def as_sortable_time(text: str | None) -> str:
    """Return a time in UTC as text that sorts by time, or "" if it is no time. A time without a zone is in UTC."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return ""
    return _as_text(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _as_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
