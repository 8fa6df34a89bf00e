"""The verdict, and the sentence that goes with it."""

from __future__ import annotations

from typing import Any

import pytest

from llmb.analysis import verdict as verdicts
from llmb.analysis.metrics import Metrics, measure
from llmb.values.job_status import Verdict
from llmb.values.model import Model
from llmb.values.recipe import Baseline

LLAMA2_70B = Model(layers=80, hidden=8192, ffn=28672, heads=64, query_groups=8, vocab=32000, seq_len=4096)
PUBLISHED = Baseline(step_time_s=6.999, release="24.11", source="README")


def run_of(step_time_s: float | None, baseline: Baseline | None = PUBLISHED) -> Metrics:
    return measure(
        model=LLAMA2_70B,
        flop_formula="full",
        mfu_from="step time",
        global_batch_size=128,
        gpus=64,
        step_time_s=step_time_s,
        peak_flops=989e12,
        baseline=baseline,
    )


def judge(metrics: Metrics, tolerance: float, **doubts: bool) -> tuple[Verdict | None, str]:
    """Judge a run that counts, except for these doubts."""
    counts = {"completed": True, "window_complete": True, "loss_nan": False, "profiled": False}
    return verdicts.judge(metrics, tolerance, **counts | doubts)


@pytest.mark.parametrize(
    ("step_time_s", "verdict", "reason"),
    [
        (7.01, "pass", "step time 7.01 s is 1.002 x the published 6.999 s (24.11), within 5 %"),
        (6.9, "pass", "step time 6.9 s is 0.986 x the published 6.999 s (24.11), within 5 %"),
        (7.908, "fail", "step time 7.908 s is 1.130 x the published 6.999 s (24.11), slower by more than 5 %"),
        (
            3.5,
            "pass",
            "step time 3.5 s is 0.500 x the published 6.999 s (24.11), faster by more than 5 %: "
            "check that the same work was done",
        ),
    ],
)
def test_a_run_is_judged_by_its_step_time(step_time_s: float, verdict: str, reason: str) -> None:
    assert judge(run_of(step_time_s), 0.05) == (verdict, reason)


@pytest.mark.parametrize(
    ("ratio", "tolerance", "verdict"),
    [(1.05, 0.05, "pass"), (1.0501, 0.05, "fail"), (1.0501, 0.06, "pass"), (1.1, 0.1, "pass")],
)
def test_the_limit_itself_passes(ratio: float, tolerance: float, verdict: str) -> None:
    assert judge(run_of(6.999 * ratio), tolerance)[0] == verdict


@pytest.mark.parametrize(
    ("doubt", "reason"),
    [
        ({"completed": False}, "the run did not complete"),
        ({"loss_nan": True}, "the loss was NaN, so the run trained nothing"),
        ({"window_complete": False}, "the measuring window is not complete"),
    ],
)
@pytest.mark.parametrize("step_time_s", [7.0, 70.0])
def test_a_run_that_cannot_count_is_neither_passed_nor_failed(
    doubt: dict[str, Any], reason: str, step_time_s: float
) -> None:
    assert judge(run_of(step_time_s), 0.05, **doubt) == ("undecided", reason)


def test_a_run_without_step_time_is_undecided() -> None:
    assert judge(run_of(None), 0.05) == ("undecided", "there is no step time to compare")


def test_without_a_baseline_there_is_no_verdict() -> None:
    assert judge(run_of(7.0, baseline=None), 0.05, completed=False)[0] is None


def test_a_profiled_run_is_not_judged() -> None:
    assert judge(run_of(7.0), 0.05, profiled=True)[0] is None
