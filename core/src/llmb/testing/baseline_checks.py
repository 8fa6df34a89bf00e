"""Checks of the numbers that a publisher measured: their agreement, and their sources."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from llmb.values.recipe import Baseline, Point, Recipe
from llmb.values.run import Run

_WORD = re.compile(r"[^\W\d_]{2,}")
_LINK = re.compile(r"://|\bdoi:|\barXiv:", re.IGNORECASE)

DAYS = 0.02
"""The relative difference of published days that rounded step times explain."""

ARITHMETIC = 1e-9
"""The relative error of values that llmb computes from published ones."""

ADVICE = "check the numbers and global_batch_size, or explain the difference in notes"


def inconsistent_baselines(recipe: Recipe) -> Iterator[str]:
    """Yield a message for each baseline whose tokens/s or days do not follow from step time and global batch.

    A baseline with a note is left out, because notes describe known irregularities.
    """
    for point in recipe.points:
        batch = point.parallelism.global_batch_size * point.seq_len
        for baseline in baselines_of(point):
            if not baseline.note:
                problems = (_days_problem(baseline, batch), _tokens_problem(baseline, batch, point.gpus))
                yield from (f"{describe_point(recipe.address, point)}: {problem}" for problem in problems if problem)


def _days_problem(baseline: Baseline, batch: int) -> str:
    """Return the difference of the published days from those of the step time, or ""."""
    if baseline.days_per_1t_tokens is None:
        return ""
    days = 1e12 / batch * baseline.step_time_s / 86_400
    if abs(baseline.days_per_1t_tokens / days - 1) <= DAYS + _rounding(baseline.days_per_1t_tokens):
        return ""
    return (
        f"days_per_1t_tokens = {baseline.days_per_1t_tokens:g}, "
        f"but {days:.3g} days follow from {baseline.step_time_s:g} s; {ADVICE}"
    )


def _tokens_problem(baseline: Baseline, batch: int, gpus: int) -> str:
    """Return the difference of the tokens of the published rate from those of a step, or ""."""
    if baseline.tokens_per_s is None:
        return ""
    tokens = baseline.tokens_per_s * baseline.step_time_s
    if abs(tokens / batch - 1) <= _tolerance(baseline, baseline.tokens_per_s, gpus):
        return ""
    rate = f"{baseline.tokens_per_s:g} tokens/s x {baseline.step_time_s:g} s"
    return f"{rate} are {tokens:.0f} tokens, but a step has {batch}; {ADVICE}"


def baselines_of(point: Point) -> tuple[Baseline, ...]:
    """Return the baselines of a published configuration, of all releases."""
    return (*([point.baseline] if point.baseline else []), *point.other_baselines)


def describe_point(address: str, point: Point | Run[Any]) -> str:
    """Return a configuration of a recipe for messages."""
    variant = f" {point.variant}" if point.variant else ""
    return f"{address} ({point.gpu_type} {point.dtype}{variant}, {point.gpus} GPUs)"


def names_document(source: str) -> bool:
    """Check whether a source is a link, or a title of two words or more."""
    return bool(_LINK.search(source)) or len(_WORD.findall(source)) > 1


def _tolerance(baseline: Baseline, tokens_per_s: float, gpus: int) -> float:
    """Return the relative difference that the rounding of the published values explains."""
    of_tokens = max(_rounding(tokens_per_s), _rounding(tokens_per_s / gpus))
    of_tflops = _rounding(baseline.tflops_per_gpu) if baseline.tflops_per_gpu else 0
    return _rounding(baseline.step_time_s) + of_tokens + of_tflops + ARITHMETIC


def _rounding(value: float) -> float:
    """Return half a unit of the last digit of a number, relative to the number. Zeros at the end count as rounded."""
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent) / value
