"""The batch of a log, compared with that of a configuration."""

import itertools
import statistics
from collections.abc import Sequence

from llmb.analysis.valid_range import finite_or_none
from llmb.values.recipe import Point
from llmb.values.steps import Step

SAME_BATCH = 0.03
"""The largest relative difference of the tokens of a step by the log and by the recipe, both of one configuration."""

ENOUGH_STEPS = 100
"""The first step number whose consumed samples give the batch size. Some logs count one or two steps less."""

BATCH_SIZE = ("global_batch_size", "global batch size")
CONSUMED_SAMPLES = ("consumed_samples", "consumed samples")
"""Names under which logs print these values."""


def describe_other_batch(steps: Sequence[Step], point: Point) -> str:
    """Return why the steps of a log are not those of a published configuration, by their batch, or ""."""
    global_batch_size = point.parallelism.global_batch_size
    tokens_per_gpu = global_batch_size * point.seq_len / point.gpus
    batch_size = _logged_batch_size(steps)
    if batch_size and abs(batch_size / global_batch_size - 1) > SAME_BATCH:
        return f"the log has a global batch size of {batch_size:,.0f}, the recipe {global_batch_size:,}"
    known = ((step.tokens_per_s_per_gpu, step.time_s) for step in steps)
    counts = [rate * time_s for rate, time_s in known if rate and time_s]
    counted = statistics.median(counts) if counts else tokens_per_gpu
    if not abs(counted / tokens_per_gpu - 1) > SAME_BATCH:  # NaN is no difference
        return ""
    return f"a step of the log has {counted:,.0f} tokens per GPU, a step of the recipe {tokens_per_gpu:,.0f}"


def _logged_batch_size(steps: Sequence[Step]) -> float | None:
    """Return the global batch size that a log prints, or that its numbers of consumed samples give, else None."""
    if steps and (printed := _read_value(steps[-1], BATCH_SIZE)):
        return printed
    consumed = [(step.step, count) for step in steps if (count := _read_value(step, CONSUMED_SAMPLES)) is not None]
    if len(consumed) == 1 and consumed[0][0] >= ENOUGH_STEPS:  # of a log of one line
        consumed = [(0, 0.0), *consumed]
    pairs = itertools.pairwise(consumed)
    per_step = [(after - before) / (second - first) for (first, before), (second, after) in pairs]
    return statistics.median(per_step) if per_step else None


def _read_value(step: Step, names: Sequence[str]) -> float | None:
    """Return the value that a log prints under one of these names, or None."""
    return next((finite_or_none(step.other_values[name]) for name in names if name in step.other_values), None)
