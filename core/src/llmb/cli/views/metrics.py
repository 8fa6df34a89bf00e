"""Metrics as rows of a table: step time, tokens/s, TFLOP/s, MFU, and notes on what to distrust."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import llmb
from llmb.cli.views.numbers import format_number
from llmb.cli.views.tables import Cell, Column, print_table

MFU_TOLERANCE = 0.03
"""The relative difference of the logged and the computed MFU that needs a note."""

HIGH_MFU = "MFU above 100 % is impossible"
"""The text in every note on an impossible MFU."""

NO_METRICS_NOTE = "no step time follows from TFLOP/s, because the recipe does not state the FLOPs of the model"
PROXY_NOTE = "proxy: the model is reduced, so the days of a training are not computed"


def print_named_values(rows: Iterable[tuple[Cell, str]]) -> None:
    """Print a table of names and values, without the rows that have no value."""
    print_table((Column(style="dim"), Column(wraps=20)), [(name, value) for name, value in rows if value])


def print_metrics(metrics: llmb.Metrics) -> None:
    """Print the metrics, one per line, and the published step time."""
    rows = metric_rows(metrics) or [("note", NO_METRICS_NOTE)]
    if metrics.tokens_per_s and metrics.days_per_1t_tokens is None:
        rows.append(("note", PROXY_NOTE))
    if baseline := metrics.baseline:
        published = f"{format_number(baseline.step_time_s, 's')}, release {baseline.release}"
        rows.append(("published", f"{published}; measured / published = {format_number(baseline.step_time_ratio)}"))
    print_named_values(rows)


def metric_rows(metrics: llmb.Metrics | None, notes: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return the name and value of every known metric, and notes. ``notes`` are those of the result."""
    if metrics is None:
        return []
    rows = [
        ("step time", format_number(metrics.step_time_s, "s")),
        ("tokens/s", format_number(metrics.tokens_per_s)),
        ("TFLOP/s per GPU", _tflops(metrics)),
        ("MFU", _mfu(metrics)),
        *(("note", note) for note in metric_notes(metrics, notes)),
        ("days to 1T tokens", format_number(metrics.days_per_1t_tokens)),
    ]
    return [(name, value) for name, value in rows if value]


def tflops_row(metrics: llmb.Metrics | None) -> tuple[str, str]:
    """Return the model TFLOP/s per GPU, as far as they are known."""
    tflops = _tflops(metrics) if metrics else ""
    return "TFLOP/s", f"{tflops} per GPU" if tflops else ""


def metric_notes(metrics: llmb.Metrics | None, notes: Collection[str]) -> list[str]:
    """Return notes on a missing or doubtful MFU, except what the ``notes`` of the result explain already."""
    if metrics is None:
        return []
    found = (_missing_mfu_note(metrics), _two_mfu_note(metrics), high_mfu_note(metrics, notes))
    return [note for note in found if note and note not in notes]


def high_mfu_note(metrics: llmb.Metrics | None, notes: Collection[str]) -> str:
    """Return the note on an impossible MFU, if possible one of the ``notes`` of the result, which explain more."""
    if explained := [note for note in notes if HIGH_MFU in note]:
        return explained[0]
    if metrics is None or max(metrics.mfu or 0.0, metrics.mfu_computed or 0.0) <= 1:
        return ""
    return f"{HIGH_MFU}: check the GPU type, the dtype, the step time and the FLOP formula"


def _tflops(metrics: llmb.Metrics) -> str:
    """Return the TFLOP/s by step time, and the logged ones if they differ, because the MFU may be based on either."""
    logged, computed = _differing_logged_tflops(metrics), format_number(metrics.model_tflops_per_gpu)
    return f"{logged} logged, {computed} by step time" if logged else computed


def _differing_logged_tflops(metrics: llmb.Metrics) -> str:
    """Return the logged TFLOP/s if they are known and differ from those by step time."""
    if metrics.mfu_logged is None or metrics.mfu_computed is None or metrics.peak_flops is None:
        return ""
    logged = format_number(metrics.mfu_logged * metrics.peak_flops / 1e12)
    return "" if logged == format_number(metrics.model_tflops_per_gpu) else logged


def is_mfu_logged(metrics: llmb.Metrics) -> bool:
    """Check whether the MFU is that of logged TFLOP/s, which differ from those by step time."""
    return metrics.mfu == metrics.mfu_logged and bool(_differing_logged_tflops(metrics))


def _mfu(metrics: llmb.Metrics) -> str:
    """Return the MFU, with its basis if the logged and the computed TFLOP/s differ."""
    if metrics.mfu is None or metrics.peak_flops is None:
        return ""
    basis = "logged" if metrics.mfu == metrics.mfu_logged else "by step time"
    shown_basis = f", {basis}" if _differing_logged_tflops(metrics) else ""
    return f"{_share_of_peak(metrics.mfu, metrics.peak_flops)}{shown_basis}"


def _missing_mfu_note(metrics: llmb.Metrics) -> str:
    """Explain a missing MFU. The computed MFU never replaces a published MFU that is based on logged TFLOP/s."""
    if metrics.step_time_s is None or metrics.mfu is not None:
        return ""
    if metrics.flops_per_sequence is None:
        return "no MFU: the recipe does not state the FLOPs of the model"
    if metrics.mfu_computed is None or metrics.peak_flops is None:
        return "no MFU: the peak FLOP/s of this GPU type and dtype are unknown"
    share = _share_of_peak(metrics.mfu_computed, metrics.peak_flops)
    return (
        "no MFU: the recipe's publisher computes it from logged TFLOP/s, which are missing "
        f"(`llmb metrics --tflops-per-gpu`); by step time it is {share}"
    )


def _share_of_peak(mfu: float, peak_flops: float) -> str:
    return f"{100 * mfu:.2f} % of {format_number(peak_flops / 1e12)} TFLOP/s"


def _two_mfu_note(metrics: llmb.Metrics) -> str:
    """Explain a logged MFU that differs from the computed MFU."""
    logged, computed = metrics.mfu_logged, metrics.mfu_computed
    if logged is None or computed is None or abs(computed / logged - 1) <= MFU_TOLERANCE:
        return ""
    return (
        f"MFU is {100 * logged:.2f} % by logged TFLOP/s but {100 * computed:.2f} % by step time and the recipe's "
        "formula: the two count different FLOPs, cover different steps, or the step times vary widely"
    )
