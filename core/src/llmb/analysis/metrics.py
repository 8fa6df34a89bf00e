"""Metrics of a run: throughput, MFU, and the comparison with the baseline. SI units, fractions as fractions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from llmb.analysis.flops import sequence_flops
from llmb.analysis.valid_range import STEP_TIME_S, TFLOPS_PER_GPU, StepTime, finite_or_none, possible
from llmb.values.texts.html_table import html_values

if TYPE_CHECKING:  # listing runs does not load the classes of specs
    from llmb.values.model import Model
    from llmb.values.recipe import Baseline, MfuSource, Point, Recipe
    from llmb.values.run import Run

_TERA = 1e12
_TRAINING_TOKENS = 1e12
_SECONDS_PER_DAY = 86400


@attrs.frozen(kw_only=True)
class Comparison:
    """Published metrics (seconds, tokens/s, a fraction, days), and ``step_time_ratio``: measured / published."""

    step_time_s: StepTime
    tokens_per_s: float | None
    mfu: float | None
    days_per_1t_tokens: float | None
    tflops_per_gpu: float | None
    step_time_ratio: float | None
    release: str
    source: str


@attrs.frozen(kw_only=True)
class Metrics:
    """Metrics of one run. The fields are the keys of the JSON. Unknown metrics are None.

    ``mfu`` is computed as the recipe's publisher does: it is ``mfu_computed`` (from step time and formula) or
    ``mfu_logged`` (from the TFLOP/s that the framework logs). If that one is None, so is ``mfu``.
    """

    step_time_s: StepTime | None
    tokens_per_s: float | None
    tokens_per_s_per_gpu: float | None
    model_tflops_per_gpu: float | None
    mfu: float | None
    mfu_computed: float | None
    mfu_logged: float | None
    days_per_1t_tokens: float | None
    flops_per_sequence: float | None
    peak_flops: float | None
    global_batch_size: int
    seq_len: int
    baseline: Comparison | None

    def as_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints, with None instead of NaN."""
        return {name: finite_or_none(value) for name, value in attrs.asdict(self).items()}

    def rows(self) -> list[tuple[str, float | None]]:
        """Return the metrics with their units, and the comparison with the baseline, for a table."""
        return [
            ("step time (s)", self.step_time_s),
            ("tokens/s", self.tokens_per_s),
            ("tokens/s per GPU", self.tokens_per_s_per_gpu),
            ("model TFLOP/s per GPU", self.model_tflops_per_gpu),
            ("MFU (%)", None if self.mfu is None else 100 * self.mfu),
            ("days to 1T tokens", self.days_per_1t_tokens),
            ("published step time (s)", self.baseline.step_time_s if self.baseline else None),
            ("ratio", self.baseline.step_time_ratio if self.baseline else None),
        ]

    def _repr_html_(self) -> str:
        """Return the metrics as a table, for a notebook."""
        return html_values("metrics", self.rows())


def compute_metrics(
    *,
    seq_len: int,
    flops_per_sequence: float | None,
    mfu_from: MfuSource,
    global_batch_size: int,
    gpus: int,
    step_time_s: float | None,
    tflops_per_gpu: float | None = None,
    peak_flops: float | None = None,
    proxy: bool = False,
    baseline: Baseline | None = None,
) -> Metrics:
    """Compute the metrics of a run from its step time (s), from the logged model TFLOP/s per GPU, or from both.

    TFLOP/s per GPU = FLOPs per sequence x global batch / (step time x GPUs x 1e12). If only TFLOP/s are given, the step
    time is derived by this equation, which is exact if the framework counts FLOPs by the recipe's formula. If only the
    step time is given, ``mfu_logged`` is None. Values outside STEP_TIME_S or TFLOPS_PER_GPU count as absent, because a
    log may print NaN, or 0 for a small model. ``flops_per_sequence`` is None if the recipe does not state how to count
    FLOPs. ``peak_flops`` is the dense peak of one GPU in FLOP/s. Without it, every MFU is None. Proxies have no days
    per 1T tokens, because they train no real model.
    """
    flops_per_gpu = None if flops_per_sequence is None else flops_per_sequence * global_batch_size / gpus
    logged = possible(tflops_per_gpu, TFLOPS_PER_GPU)
    step_time = possible(step_time_s, STEP_TIME_S)
    if step_time is None and logged is not None and flops_per_gpu is not None:
        step_time = possible(flops_per_gpu / (logged * _TERA), STEP_TIME_S)
    achieved = None if flops_per_gpu is None else _per(flops_per_gpu / _TERA, step_time)
    tokens = _per(seq_len * global_batch_size, step_time)
    computed, from_log = _utilisation(achieved, peak_flops), _utilisation(logged, peak_flops)
    return Metrics(
        step_time_s=step_time,
        tokens_per_s=tokens,
        tokens_per_s_per_gpu=None if tokens is None else tokens / gpus,
        model_tflops_per_gpu=achieved,
        mfu=from_log if mfu_from == "logged" else computed,
        mfu_computed=computed,
        mfu_logged=from_log,
        days_per_1t_tokens=None if proxy else _per(_TRAINING_TOKENS / _SECONDS_PER_DAY, tokens),
        flops_per_sequence=flops_per_sequence,
        peak_flops=finite_or_none(peak_flops),
        global_batch_size=global_batch_size,
        seq_len=seq_len,
        baseline=_compare(baseline, step_time) if baseline else None,
    )


def compute_run_metrics(
    run: Run[Any], step_time_s: float | None, tflops_per_gpu: float | None, peak: float | None
) -> Metrics:
    """Compute the metrics of a run from a step time (s), logged TFLOP/s per GPU, and the peak of a GPU (FLOP/s)."""
    return compute_configuration_metrics(run, run.architecture, run, step_time_s, tflops_per_gpu, peak)


def compute_configuration_metrics(
    sizes: Run[Any] | Point,
    model: Model | None,
    conventions: Run[Any] | Recipe,
    step_time_s: float | None,
    tflops_per_gpu: float | None,
    peak_flops: float | None,
) -> Metrics:
    """Compute the metrics of a model with these sizes. ``conventions`` state how FLOPs and MFU are counted."""
    formula, per_token = conventions.flop_formula, conventions.flops_per_token
    return compute_metrics(
        seq_len=sizes.seq_len,
        flops_per_sequence=sequence_flops(model, formula, per_token, seq_len=sizes.seq_len, tp=sizes.parallelism.tp),
        mfu_from=conventions.mfu_from,
        global_batch_size=sizes.parallelism.global_batch_size,
        gpus=sizes.gpus,
        step_time_s=step_time_s,
        tflops_per_gpu=tflops_per_gpu,
        peak_flops=peak_flops,
        proxy=sizes.proxy,
        baseline=sizes.baseline,
    )


def _per(amount: float, divisor: float | None) -> float | None:
    return None if divisor is None else amount / divisor


def _utilisation(tflops_per_gpu: float | None, peak_flops: float | None) -> float | None:
    peak = finite_or_none(peak_flops)
    return None if tflops_per_gpu is None or not peak else tflops_per_gpu * _TERA / peak


def _compare(baseline: Baseline, step_time_s: float | None) -> Comparison:
    published = attrs.asdict(baseline, filter=lambda field, _value: field.name != "note")
    return Comparison(**published, step_time_ratio=None if step_time_s is None else step_time_s / baseline.step_time_s)
