"""Filters of recorded runs, such as ``image=*25.12*`` or ``since=7d``, as conditions on the columns of the index."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import get_args

import attrs

from llmb.values.errors import Fault, SpecError
from llmb.values.run_states import RunState, Verdict
from llmb.values.texts.nearest_name import nearest_name

FILTER_KEYS = ("recipe", "image", "target", "gpu_type", "dtype", "gpus", "sweep", "state", "verdict", "since", "until")
CHOICES = {"state": get_args(RunState), "verdict": get_args(Verdict)}
AGE = re.compile(r"([0-9]{1,12})([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

MAX_VALUES = 500
"""Values of a filter. SQLite accepts fewer than 1,000."""

LONGEST_VALUE = 1000
"""Characters of a value. SQLite rejects patterns that are far longer."""

RANGE = re.compile(r"([0-9]{1,10})(?:\.\.([0-9]{1,10}))?")
"""A number of GPUs, or the first and the last one."""

SORT_KEYS = ("created", "step_time", "ratio", "mfu", "gpus")
"""Columns by which runs can be sorted."""


@attrs.frozen
class Condition:
    """A condition in SQL, with the values of its question marks."""

    sql: str
    values: tuple[str | int, ...]


def parse_filters(filters: Sequence[str]) -> list[Condition]:
    """Return the conditions of ``key=value`` and ``key!=value`` texts, alone or in braces. Raise SpecError."""
    return [_parse_filter(each) for text in filters for each in split_filters(text)]


def split_filters(text: str) -> list[str]:
    """Return the filters of a text, which may be in braces: ``{gpus=64 state=failed}``."""
    return text[1:-1].split() if is_filter(text) else [text]


def is_filter(text: str) -> bool:
    """Check whether a text is filters in braces, and not a run id."""
    return text.startswith("{") and text.endswith("}")


def has_repeats_of(first_repeats: Sequence[str]) -> Condition:
    """Return the condition that a run is one of the repeats of these runs."""
    return Condition("first_repeat in (select value from json_each(?))", (json.dumps(first_repeats),))


def check_sort_key(key: str) -> None:
    """Raise SpecError for a key by which runs cannot be sorted."""
    if key not in SORT_KEYS:
        nearest = nearest_name(key, SORT_KEYS)
        raise SpecError(Fault(message=f"unknown sort key {key!r}", expected=", ".join(SORT_KEYS), nearest=nearest))


def _parse_filter(text: str) -> Condition:
    key, differs, value = text.partition("!=")
    if not differs or key not in FILTER_KEYS or key in ("since", "until"):
        return _parse_equality(text)
    excluded = _parse_equality(f"{key}={value}")
    return Condition(f"not coalesce({excluded.sql}, 0)", excluded.values)  # also true of a run without a value


def _filter_of_value(text: str) -> str | None:
    """Return the filter for a value that only one key has, such as ``state=failed``, or None."""
    return next((f"{key}={text}" for key, values in CHOICES.items() if text in values), None)


def _parse_equality(text: str) -> Condition:
    key, equals, value = text.partition("=")
    if key not in FILTER_KEYS or not equals:
        keys = ", ".join(FILTER_KEYS)
        problem, expected = ("unknown", keys) if equals else ("invalid", f"key=value with one of the keys {keys}")
        nearest = None if key in FILTER_KEYS else _filter_of_value(text) or nearest_name(key, FILTER_KEYS)
        raise SpecError(Fault(message=f"{problem} filter {text!r}", expected=expected, nearest=nearest))
    if key in ("since", "until"):
        limits = "created >= ?" if key == "since" else "created < ? and created <> ''"
        return Condition(limits, (_parse_moment(key, value),))
    wanted = [as_storable_text(each) for each in value.split(",")]
    if len(wanted) > MAX_VALUES or max(map(len, wanted)) > LONGEST_VALUE:
        expected = f"at most {MAX_VALUES} values of at most {LONGEST_VALUE} characters"
        raise SpecError(Fault(message=f"the filter {key} is too long", expected=expected))
    if key == "gpus":
        ranges = [_parse_range(each) for each in wanted]
        return _any_of(["gpus between ? and ?"] * len(ranges), [limit for each in ranges for limit in each])
    for each in wanted:
        if key in CHOICES and each not in CHOICES[key]:
            nearest = nearest_name(each, CHOICES[key])
            raise SpecError(Fault(message=f"unknown {key} {each!r}", expected=", ".join(CHOICES[key]), nearest=nearest))
    if key == "sweep":  # the column has each swept key with its value between blanks
        wanted = [f"* {each} *" for each in wanted]
    return _any_of([f"{key} glob ?"] * len(wanted), wanted)


def _any_of(conditions: Sequence[str], values: Sequence[str | int]) -> Condition:
    return Condition(f"({' or '.join(conditions)})", tuple(values))


def _parse_range(text: str) -> tuple[int, int]:
    match = RANGE.fullmatch(text)
    low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if low > high:
        raise SpecError(Fault(message=f"invalid gpus {text!r}", expected="a number such as 64, or 64..512"))
    return low, high


def _parse_moment(key: str, text: str) -> str:
    """Return a time as records contain it."""
    moment = _time_of_age(key, text) or as_sortable_time(text)
    if not moment:
        raise SpecError(Fault(message=f"invalid {key} {text!r}", expected="7d or 2026-11-01"))
    return moment


def _time_of_age(key: str, text: str) -> str:
    """Return the time that is so long ago, or "" if the text is no age. Raise SpecError before the year 1."""
    if not (match := AGE.fullmatch(text)):
        return ""
    try:
        return _as_text(datetime.now(UTC) - timedelta(**{UNITS[match[2]]: int(match[1])}))
    except OverflowError:
        raise SpecError(
            Fault(message=f"invalid {key} {text!r}: before the year 1", expected="7d or 2026-11-01")
        ) from None


def as_storable_text(text: str) -> str:
    """Return text that SQLite can store: bytes of a command line that are not UTF-8 become escapes."""
    return text.encode(errors="backslashreplace").decode()


def as_sortable_time(text: str | None) -> str:
    """Return a time in UTC as text that sorts by time, or "" if it is no time. A time without a zone is in UTC."""
    try:
        moment = datetime.fromisoformat(text or "")
        return _as_text(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return ""


def _as_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
