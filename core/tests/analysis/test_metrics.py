"""The metrics of a run, by independent arithmetic."""

from __future__ import annotations

import json
import math
from typing import Any

import attrs
import pytest

from llmb.analysis.flops import flops_per_sequence
from llmb.analysis.impossible_step_times import high_mfu_note
from llmb.analysis.metrics import Metrics, compute_metrics, compute_run_metrics
from llmb.recipes.accelerators import accelerators
from llmb.values.model import Model
from llmb.values.recipe import Baseline

# An invented model of 2 layers: 16 x (12 x 2 x 64 x 3.5 + 18 x 2 x 20 x 8 + 6 x 50 x 8) FLOPs a sequence.
SMALL = Model(layers=2, hidden=8, ffn=20, heads=4, query_groups=2, vocab=50, seq_len=16)
SMALL_FLOPS = 16 * (5376 + 5760 + 2400)


def small(**changes: Any) -> Metrics:
    given: dict[str, Any] = {
        "seq_len": 16,
        "flops_per_sequence": flops_per_sequence(SMALL, "full"),
        "mfu_from": "step time",
        "global_batch_size": 12,
        "gpus": 3,
        "step_time_s": 0.5,
        "peak_flops": 4e6,
    }
    return compute_metrics(**given | changes)


def test_an_invented_recipe_by_hand() -> None:
    metrics = small()
    assert metrics.flops_per_sequence == SMALL_FLOPS == 216_576
    assert metrics.tokens_per_s == 16 * 12 / 0.5 == 384
    assert metrics.tokens_per_s_per_gpu == 128
    assert metrics.model_tflops_per_gpu == pytest.approx(216_576 * 12 / 3 / 0.5 / 1e12)
    assert metrics.mfu == metrics.mfu_computed == pytest.approx(1_732_608 / 4e6)
    assert metrics.days_per_1t_tokens == pytest.approx(1e12 / 384 / 86400)
    assert (metrics.global_batch_size, metrics.seq_len, metrics.peak_flops) == (12, 16, 4e6)
    assert metrics.mfu_logged is None
    assert metrics.baseline is None


def test_megatron_bridge_405b_on_128_gb200() -> None:
    """The example of the README of release 25.10: MFU from the logged TFLOP/s, 33.40 %, 91339 tokens/s, 126.72 days."""
    llama_405b = Model(layers=126, hidden=16384, ffn=53248, heads=128, query_groups=8, vocab=128256, seq_len=8192)
    metrics = compute_metrics(
        seq_len=8192,
        flops_per_sequence=flops_per_sequence(llama_405b, "causal"),
        mfu_from="logged",
        global_batch_size=64,
        gpus=128,
        step_time_s=5.74147,
        tflops_per_gpu=1636.80,
        peak_flops=accelerators()["gb200"].peak_flops["fp8"],
    )
    assert metrics.mfu is not None
    assert metrics.mfu == metrics.mfu_logged == pytest.approx(0.3340, abs=5e-5)
    assert metrics.tokens_per_s == pytest.approx(91_316, abs=1)  # the README rounds the step time to 5.74 s: 91339
    assert metrics.days_per_1t_tokens == pytest.approx(126.7, abs=0.05)
    assert metrics.peak_flops == 4900e12
    assert metrics.mfu_computed is not None
    assert metrics.mfu_computed > 1.05 * metrics.mfu  # the two are not to be mixed


def test_twice_the_gpus_and_batch_in_the_same_time_is_twice_the_throughput_at_the_same_mfu() -> None:
    one, two = small(), small(gpus=6, global_batch_size=24)
    assert one.tokens_per_s is not None
    assert two.tokens_per_s == 2 * one.tokens_per_s
    assert two.tokens_per_s_per_gpu == one.tokens_per_s_per_gpu
    assert two.mfu == pytest.approx(one.mfu)


def test_the_step_time_follows_from_logged_tflops_alone() -> None:
    both_ways = small(step_time_s=None, tflops_per_gpu=small().model_tflops_per_gpu)
    assert both_ways.step_time_s == pytest.approx(0.5)
    assert both_ways.tokens_per_s == pytest.approx(384)
    assert both_ways.mfu_computed == pytest.approx(both_ways.mfu_logged)


def test_an_impossible_step_time_does_not_follow_from_logged_tflops() -> None:
    """A record with it would be damaged."""
    assert small(step_time_s=None, tflops_per_gpu=1e6).step_time_s is None


def test_the_publishers_mfu_is_not_replaced_by_another() -> None:
    metrics = small(mfu_from="logged")
    assert metrics.mfu is None
    assert metrics.mfu_computed is not None


def test_without_a_peak_there_is_no_mfu() -> None:
    metrics = small(peak_flops=None, tflops_per_gpu=1.0)
    assert (metrics.mfu, metrics.mfu_computed, metrics.mfu_logged, metrics.peak_flops) == (None, None, None, None)
    assert metrics.tokens_per_s == 384


def test_proxies_have_no_days_to_train() -> None:
    assert small(proxy=True).days_per_1t_tokens is None


@pytest.mark.parametrize("absent", [None, math.nan])
def test_without_a_step_time_the_figures_are_absent(absent: float | None) -> None:
    baseline = Baseline(step_time_s=0.4, release="24.11", source="README")
    metrics = small(step_time_s=absent, baseline=baseline)
    assert metrics.step_time_s is metrics.tokens_per_s is metrics.mfu is metrics.days_per_1t_tokens is None
    assert metrics.flops_per_sequence == SMALL_FLOPS
    assert metrics.baseline is not None
    assert metrics.baseline.step_time_ratio is None


def test_a_logged_zero_states_nothing() -> None:
    metrics = small(tflops_per_gpu=0.0)
    assert metrics.mfu_logged is None
    assert metrics.step_time_s == 0.5


@pytest.mark.parametrize("odd", [0, -1.5, math.inf, 1e-300, 1e308])
def test_what_a_log_states_and_cannot_be_is_absent(odd: float) -> None:
    metrics = small(step_time_s=odd, tflops_per_gpu=odd)
    assert metrics.step_time_s is metrics.tokens_per_s is metrics.mfu_computed is metrics.mfu_logged is None


def test_the_json_has_the_keys_of_the_contract_and_no_nan() -> None:
    baseline = Baseline(step_time_s=0.4, mfu=0.5, release="24.11", source="README", note="odd")
    table = small(tflops_per_gpu=math.nan, peak_flops=math.nan, baseline=baseline).as_dict()
    assert " ".join(table) == (
        "step_time_s tokens_per_s tokens_per_s_per_gpu model_tflops_per_gpu mfu mfu_computed mfu_logged "
        "days_per_1t_tokens flops_per_sequence peak_flops global_batch_size seq_len baseline"
    )
    assert table["baseline"] == {
        "step_time_s": 0.4,
        "tokens_per_s": None,
        "mfu": 0.5,
        "days_per_1t_tokens": None,
        "tflops_per_gpu": None,
        "step_time_ratio": 1.25,
        "release": "24.11",
        "source": "README",
    }
    assert table["peak_flops"] is None
    json.dumps(table, allow_nan=False)
    assert small().as_dict()["baseline"] is None


@pytest.mark.parametrize(
    ("tables", "reason"),
    [("usual", "the machine was busy"), ("usual", "states too many FLOPs"), ("big", "check the GPU type")],
)
def test_an_mfu_above_100_percent_has_a_warning_with_its_likely_reason(spec: Any, tables: str, reason: str) -> None:
    target = {"gpus_per_node": 64} if tables == "big" else {}
    [run] = getattr(spec, tables)(target=target).runs()
    assert high_mfu_note(run, compute_run_metrics(run, 1000.0, None, 1e15)) == ""
    assert reason in high_mfu_note(run, compute_run_metrics(run, 0.001, None, 1e9))
    assert high_mfu_note(run, compute_run_metrics(run, 1.0, None, None)) == ""
    assert high_mfu_note(run, None) == ""


def test_an_impossible_mfu_of_a_hook_names_no_busy_cpu(spec: Any) -> None:
    [run] = spec.usual().runs()
    run = attrs.evolve(run, gpu_type="npu9")
    assert "check the result of peak_flops() of the plugins" in high_mfu_note(
        run, compute_run_metrics(run, 0.001, None, 1e9)
    )
