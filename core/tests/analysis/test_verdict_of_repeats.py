"""Verdict on repeats: its values, its error rates, and repeats that do not count."""

from __future__ import annotations

import random
from collections.abc import Sequence

import attrs
import pytest

from llmb.analysis.measuring_window import MeasuredWindow, summarise
from llmb.analysis.steady_state import SteadyState, find_steady_state
from llmb.analysis.verdict import Judgement, Repeat, judge_step_times
from llmb.values.steps import Step

STEADY = SteadyState(
    first=4,
    last=50,
    count=47,
    step_time_s=10.0,
    step_time_std_s=0.0,
    drift=0.0,
    spikes=(),
    spike_share=0.0,
    spike_period=None,
    autocorrelation=0.0,
)


def repeat(window_s: float, *, noise: float = 0.0, steady_s: float | None = None, name: str = "the run") -> Repeat:
    """Return a repeat with a window of one step, and the relative noise of a step."""
    steady_s = window_s if steady_s is None else steady_s
    return Repeat(
        window=MeasuredWindow(first=50, last=50, count=1, step_time_s=window_s, step_time_std_s=None),
        steady_state=attrs.evolve(STEADY, step_time_s=steady_s, step_time_std_s=noise * steady_s),
        name=name,
    )


def judge(*repeats: Repeat, tolerance: float = 0.05) -> Judgement:
    return judge_step_times(repeats, 10.0, tolerance)


@pytest.mark.parametrize(
    ("windows_s", "noise", "ratio", "margin", "verdict", "more"),
    [
        ([10.00], 0, 1.0, 0.0118, "pass", None),
        ([10.37], 0, 1.037, 0.0122, "pass", None),
        ([10.38], 0, 1.038, 0.0122, "undecided", 1),
        ([10.62], 0, 1.062, 0.0125, "undecided", 1),
        ([10.63], 0, 1.063, 0.0125, "fail", None),
        ([10.50], 0, 1.050, 0.0124, "undecided", 0),
        ([10.4, 10.4], 0, 1.040, 0.0068, "pass", None),
        ([10.4, 10.5, 10.45], 0, 1.045, 0.0060, "undecided", 1),
        ([10.0, 10.3, 10.1], 0, 1.0133, 0.0121, "pass", None),
        ([10.2, 10.9, 10.4, 10.6], 0, 1.0525, 0.0208, "undecided", 0),
        ([10.00], 0.035, 1.0, 0.0576, "undecided", 1),
        ([11.00], 0.02, 1.1, 0.0362, "fail", None),
    ],
)
def test_the_verdict_is_that_of_the_mean_with_its_margin(
    windows_s: Sequence[float], noise: float, ratio: float, margin: float, verdict: str, more: int | None
) -> None:
    found = judge(*(repeat(window_s, noise=noise) for window_s in windows_s))
    assert (found.verdict, found.more_repeats) == (verdict, more)
    assert found.ratio == pytest.approx(ratio, abs=1e-4)
    assert found.interval == pytest.approx((ratio - margin, ratio + margin), abs=2e-4)


@pytest.mark.parametrize(
    ("window_s", "tolerance", "reason"),
    [
        (10.0, 0.05, "ratio 1.000, between 0.988 and 1.012; the limit is 1.05"),
        (10.8, 0.05, "ratio 1.080, between 1.067 and 1.093; the limit is 1.05"),
        (
            10.62,
            0.05,
            "ratio 1.062, between 1.0495 and 1.074; the limit is 1.05; about 1 more repeat would settle it",
        ),
        (
            10.5,
            0.05,
            "ratio 1.050, between 1.038 and 1.062; the limit is 1.05; not even 10 more repeats would settle it",
        ),
        (
            5.0,
            0.05,
            "ratio 0.500, between 0.494 and 0.506; the limit is 1.05; "
            "faster by more than 5 %, check that the same work was done",
        ),
    ],
)
def test_the_reason_has_the_interval_and_the_limit(window_s: float, tolerance: float, reason: str) -> None:
    assert judge(repeat(window_s), tolerance=tolerance).reason == reason


def test_an_upper_end_exactly_at_the_limit_passes() -> None:
    interval = judge(repeat(10.0)).interval
    assert interval
    assert judge(repeat(10.0), tolerance=interval[1] - 1).verdict == "pass"


def test_a_repeat_with_a_checkpoint_in_its_window_is_left_out_and_named() -> None:
    found = judge(repeat(10.0), repeat(30.0, steady_s=10.0, name="repeat 2"), repeat(10.1))
    assert (found.verdict, found.left_out) == ("pass", (1,))
    assert found.ratio == pytest.approx(1.005)
    assert found.reason.endswith(
        "repeat 2 is left out: the window (step 50, 30 s) took 3 x the steady state (10 s, steps 4 to 50); "
        "it may include a checkpoint"
    )


def test_noisy_steps_excuse_a_window_that_differs() -> None:
    assert not judge(repeat(10.5, steady_s=10.0, noise=0.02), repeat(10.0)).left_out
    assert judge(repeat(10.5, steady_s=10.0, noise=0.01), repeat(10.0)).left_out == (0,)


def test_one_run_whose_window_and_steady_state_disagree_is_undecided() -> None:
    found = judge(repeat(15.69, steady_s=9.9))
    assert (found.verdict, found.more_repeats, found.left_out) == ("undecided", None, ())
    assert found.reason == (
        "the window (step 50, 15.69 s) took 1.58 x the steady state (9.9 s, steps 4 to 50); it may include a checkpoint"
    )


def test_one_run_that_is_slow_in_its_window_and_otherwise_fails() -> None:
    found = judge(repeat(15.0, steady_s=12.0))
    assert found.verdict == "fail"
    assert "ratio 1.500" in found.reason
    assert "took 1.25 x the steady state" in found.reason


def test_a_window_that_is_too_fast_is_no_checkpoint() -> None:
    assert judge(repeat(0.02, steady_s=12.0)).reason.endswith("its step times may be incomplete")


def test_a_step_that_was_printed_too_early_does_not_hide_a_slow_run() -> None:
    times_s = [10.8] * 50
    times_s[40] = 0.1
    steps = [Step(step=at + 1, time_s=time_s) for at, time_s in enumerate(times_s)]
    summary = summarise(steps, (35, 44))
    window = summary.measured(summary.step_time_s)
    assert window
    assert window.step_time_s < 10  # the plain ratio passes
    assert judge(Repeat(window=window, steady_state=find_steady_state(steps))).verdict == "undecided"


def test_several_runs_that_are_all_off_are_judged_twice() -> None:
    found = judge(repeat(30.0, steady_s=10.0, name="repeat 1"), repeat(31.0, steady_s=10.0, name="repeat 2"))
    assert (found.verdict, found.left_out) == ("undecided", ())
    assert found.reason.startswith("no window represents its steady state; in repeat 1, the window (step 50, 30 s)")


@pytest.mark.parametrize(("count", "margin"), [(1, 0.01645), (10, 0.0118)])
def test_without_a_steady_state_the_noise_is_assumed(count: int, margin: float) -> None:
    window = MeasuredWindow(first=1, last=count, count=count, step_time_s=10.0, step_time_std_s=None)
    found = judge(Repeat(window=window, steady_state=None))
    assert found.interval == pytest.approx((1 - margin, 1 + margin), abs=1e-4)
    assert found.reason.endswith("the noise is assumed, because a log has fewer than 8 step times")


def windows_with_noise(draw: random.Random, mean_s: float, repeats: int) -> list[Repeat]:
    """Return runs that differ by 2 %, with steps that differ by 1 %, and windows of ten steps."""
    runs = []
    for _ in range(repeats):
        steady_s = mean_s * draw.gauss(1, 0.02)
        window_s = steady_s * draw.gauss(1, 0.01 / 10**0.5)
        window = MeasuredWindow(first=35, last=44, count=10, step_time_s=window_s, step_time_std_s=None)
        steady = attrs.evolve(STEADY, step_time_s=steady_s, step_time_std_s=0.01 * steady_s)
        runs.append(Repeat(window=window, steady_state=steady))
    return runs


@pytest.mark.parametrize(("mean_s", "wrong"), [(10.0, "fail"), (11.0, "pass")])
@pytest.mark.parametrize(("repeats", "most"), [(1, 0.005), (2, 0.001)])
def test_wrong_verdicts_are_rare_if_runs_differ_by_two_percent(
    mean_s: float, wrong: str, repeats: int, most: float
) -> None:
    draw, runs = random.Random(11), 10_000
    verdicts = [judge(*windows_with_noise(draw, mean_s, repeats)).verdict for _ in range(runs)]
    assert verdicts.count(wrong) / runs < most  # type: ignore[arg-type]
    assert "undecided" in verdicts


def test_one_slow_step_in_the_window_never_fails_a_healthy_run() -> None:
    draw, verdicts = random.Random(5), set()
    for _ in range(1500):
        times_s = [10 * draw.gauss(1, 0.01) for _ in range(50)]
        times_s[draw.randrange(34, 44)] *= 3
        steps = [Step(step=at + 1, time_s=time_s) for at, time_s in enumerate(times_s)]
        summary = summarise(steps, (35, 44))
        assert summary.step_time_s
        assert summary.step_time_s > 10.5  # the plain ratio fails
        window = summary.measured(summary.step_time_s)
        assert window
        verdicts.add(judge(Repeat(window=window, steady_state=find_steady_state(steps))).verdict)
    assert verdicts == {"undecided"}
