"""The step that the numbers of a line make."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from llmb.plugins.declared.value_names_and_units import CLOCKS, KNOWN, TFLOPS_PER_GPU, TIMES, TOKENS_PER_S_PER_GPU
from llmb.values.run import Run
from llmb.values.steps import MOST_STEPS

DAY_S: Final = 86400

_SUFFIXES: Final = {b"k": b"e3", b"K": b"e3", b"M": b"e6", b"G": b"e9", b"B": b"e9", b"T": b"e12"}
"""Suffixes of numbers that scripts shorten, as exponents. Nanotron prints no suffix below 1000, so both occur."""

_DATE: Final = re.compile(rb"(\d{4})[-/](\d{2})[-/](\d{2})[ T_]")


def as_number(name: str, text: bytes) -> float:
    """Return the value of a number in a log, also of ``1.21K``.

    A time of day is in seconds, with a date since the year 1.
    """
    if name != "clock":
        if exponent := _SUFFIXES.get(text[-1:]):
            text = text[:-1] + exponent
        return float(text.replace(b",", b""))
    day = _DATE.match(text)
    hours, minutes, seconds = text[day.end() if day else 0 :].replace(b",", b".").split(b":")
    try:
        days = date(*map(int, day.groups())).toordinal() if day else 0
    except ValueError:
        return math.nan
    return days * DAY_S + int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def step_number(values: Mapping[str, float], run: Run[Any] | None) -> int | None:
    """Return the number of a step, or None if the values have none. ``samples`` need the run."""
    number = values.get("step", math.nan)
    if run and math.isfinite(samples := values.get("samples", math.nan)):
        number = math.floor(samples / run.parallelism.global_batch_size)
    return int(number) if 0 <= number < MOST_STEPS and float(number).is_integer() else None


def clock_s(values: Mapping[str, float]) -> float | None:
    """Return the time of day in seconds, or None if the values have none."""
    return _scaled(values, CLOCKS)


def elapsed_s(before: float, now: float) -> float:
    """Return the seconds between two times of day. A time without a date that goes back has passed midnight."""
    return now - before + (DAY_S if now < before < 2 * DAY_S else 0)


def tflops_per_gpu(values: Mapping[str, float], run: Run[Any] | None) -> float | None:
    """Return TFLOP/s per GPU, or None if the values do not have them."""
    if "tflops" in values and run:
        return values["tflops"] / run.gpus
    return _scaled(values, TFLOPS_PER_GPU)


def tokens_per_s_per_gpu(values: Mapping[str, float], run: Run[Any] | None) -> float | None:
    """Return tokens/s per GPU, or None if the values do not have them."""
    if "tokens_per_s" in values and run:
        return values["tokens_per_s"] / run.gpus
    return _scaled(values, TOKENS_PER_S_PER_GPU)


def step_time_s(values: Mapping[str, float], run: Run[Any] | None) -> float | None:
    """Return the step time in seconds: a printed one, else that of a printed rate, or None."""
    if (time_s := _scaled(values, TIMES)) is not None:
        return time_s
    if rate := values.get("steps_per_s"):
        return 1 / rate
    if run and (rate := values.get("samples_per_s")):
        return run.parallelism.global_batch_size / rate
    if run and (rate := tokens_per_s_per_gpu(values, run)):
        return run.parallelism.global_batch_size * run.seq_len / (run.gpus * rate)
    return None


def own_metrics(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values whose names have no meaning for llmb."""
    return {name: value for name, value in values.items() if name not in KNOWN}


def _scaled(values: Mapping[str, float], units: Mapping[str, float]) -> float | None:
    return next((values[name] / unit for name, unit in units.items() if name in values), None)
