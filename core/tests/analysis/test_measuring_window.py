"""Means over a measuring window, and whether the log covers it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from llmb.analysis.measuring_window import summarise
from llmb.values.recipe import Window
from llmb.values.steps import Step


def steps(numbers: Iterable[int], **values: float) -> list[Step]:
    """Return steps that each take a tenth of their number."""
    return [Step(step=number, time_s=number / 10, **values) for number in numbers]  # type: ignore[arg-type]


def test_the_last_step_alone() -> None:
    summary = summarise(steps(range(1, 51)), "last")
    assert (summary.count, summary.step_time_s, summary.step_time_std_s, summary.complete) == (1, 5.0, None, True)


def test_the_mean_and_the_sample_deviation_of_a_window_with_both_its_ends() -> None:
    summary = summarise(steps(range(1, 51), tflops_per_gpu=400.0), (41, 45))
    assert summary.count == 5
    assert summary.step_time_s == pytest.approx(4.3)
    assert summary.step_time_std_s == pytest.approx(math.sqrt((0.04 + 0.01 + 0.0 + 0.01 + 0.04) / 4))
    assert (summary.tflops_per_gpu, summary.tflops_per_gpu_std, summary.complete) == (400.0, 0.0, True)


@pytest.mark.parametrize(
    ("rates", "mean"),
    [
        ((100.0, 101.0), 100.5),  # as publishers state it
        ((100.0, 100.0, 100.0, 20.0), 80.0),  # the last step contains a checkpoint
        ((100.0, 1900.0), 190.0),  # the work of both steps divided by their time
    ],
)
def test_the_mean_rate_fits_the_mean_step_time(rates: tuple[float, ...], mean: float) -> None:
    log = [Step(step=number, time_s=190 / rate, tflops_per_gpu=rate) for number, rate in enumerate(rates)]
    assert summarise(log, (0, len(rates) - 1)).tflops_per_gpu == pytest.approx(mean)


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, 0.0, -2.0, 1.7e308])
def test_a_step_without_time_is_left_out(missing: float | None) -> None:
    log = [*steps(range(5)), Step(step=5, time_s=missing, tflops_per_gpu=7.0), *steps([6])]
    summary = summarise(log, (4, 6))
    assert (summary.count, summary.step_time_s, summary.tflops_per_gpu) == (2, 0.5, 7.0)
    assert summary.complete


@pytest.mark.parametrize("window", ["last", (3, 5)])
@pytest.mark.parametrize("time_s", [None, 0.0, -2.0])
def test_a_window_whose_last_step_has_no_time_is_not_complete(window: Window, time_s: float | None) -> None:
    assert not summarise([*steps(range(5)), Step(step=5, time_s=time_s, tflops_per_gpu=400.0)], window).complete


@pytest.mark.parametrize("tflops_per_gpu", [0.0, -400.0])
def test_a_throughput_that_cannot_be_is_none(tflops_per_gpu: float) -> None:
    log = [Step(step=1, tflops_per_gpu=tflops_per_gpu)]
    assert (summarise(log, "last").tflops_per_gpu, summarise(log, "last").complete) == (None, False)


@pytest.mark.parametrize("window", ["last", (2, 5)])
@pytest.mark.parametrize("rate", ["tflops_per_gpu", "tokens_per_s_per_gpu"])
def test_a_log_that_states_rates_in_the_place_of_times_is_measured_by_them(window: Window, rate: str) -> None:
    rates = [Step(step=number, **{rate: 400.0}) for number in range(6)]  # type: ignore[arg-type]
    assert summarise(rates, window).complete
    assert not summarise([*rates[:5], Step(step=5)], window).complete
    assert not summarise([*steps(range(5)), rates[5]], window).complete


@pytest.mark.parametrize(
    ("printed", "window", "complete"),
    [
        (range(50), (10, 49), True),  # MaxText counts from 0
        (range(49), (10, 49), False),  # cut off before the last step
        (range(20, 50), (10, 49), False),  # the beginning is missing
        ([*range(20), *range(21, 50)], (10, 49), False),  # one line was lost
        (range(10, 51, 10), (35, 44), True),  # a log of each tenth step
        (range(10, 51, 10), (10, 50), True),
        (range(10, 41, 10), (35, 50), False),  # 50 is due and not there
        ([1, *range(10, 51, 10)], (20, 50), True),  # and the first
        ([10, 20, 30, 50], (10, 50), False),  # 40 was lost
        (range(10, 51, 10), (41, 49), False),  # no printed step is within
        ([0, 49], (10, 49), False),  # two lines have no log interval
        (range(50), (60, 70), False),
    ],
)
def test_a_window_is_complete_when_the_log_goes_through_it_at_its_log_interval(
    printed: Iterable[int], window: Window, complete: bool
) -> None:
    assert summarise(steps(printed), window).complete is complete


def test_an_empty_log_has_no_figures() -> None:
    summary = summarise([], (1, 5))
    assert (summary.count, summary.step_time_s, summary.complete) == (0, None, False)
    assert not summarise([], "last").complete


@pytest.mark.parametrize(("window", "printed"), [("last", "last"), ((2, 3), [2, 3])])
def test_the_json_has_the_keys_of_the_contract(window: Window, printed: object) -> None:
    table = summarise(steps(range(5)), window).as_dict()
    assert " ".join(table) == "window count step_time_s step_time_std_s tflops_per_gpu tflops_per_gpu_std"
    assert table["window"] == printed
