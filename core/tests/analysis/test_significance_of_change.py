"""Changes between two groups of runs: real ones, noise, and the exact rank test."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from statistics import NormalDist

import pytest

from llmb.analysis.measuring_window import MeasuredWindow
from llmb.analysis.significance_of_change import compare_repeats, mann_whitney_p
from llmb.analysis.steady_state import SteadyState
from llmb.analysis.verdict import Repeat


def run(window_s: float, *, steady_s: float | None = None) -> Repeat:
    steady = SteadyState(
        first=4,
        last=50,
        count=47,
        step_time_s=window_s if steady_s is None else steady_s,
        step_time_std_s=0.0,
        drift=0.0,
        spikes=(),
        spike_share=0.0,
        spike_period=None,
        autocorrelation=0.0,
    )
    window = MeasuredWindow(first=50, last=50, count=1, step_time_s=window_s, step_time_std_s=None)
    return Repeat(window=window, steady_state=steady)


@pytest.mark.parametrize(
    ("a", "b", "change", "margin", "call"),
    [
        ([14.78], [15.10], 0.0217, 0.0225, "none"),
        ([14.78], [15.20], 0.0284, 0.0225, "slower"),
        ([15.20], [14.78], -0.0276, 0.0225, "faster"),
        ([14.75, 14.78, 14.81], [15.82, 15.90, 15.98], 0.0758, 0.0084, "slower"),
    ],
)
def test_a_change_larger_than_its_margin_is_called(
    a: Sequence[float], b: Sequence[float], change: float, margin: float, call: str
) -> None:
    found = compare_repeats([run(each) for each in a], [run(each) for each in b])
    assert (found.change, found.margin) == (pytest.approx(change, abs=1e-4), pytest.approx(margin, abs=1e-4))
    assert (found.call, found.p) == (call, None)


def test_a_run_with_a_checkpoint_in_its_window_is_left_out() -> None:
    side = [run(10.0), run(30.0, steady_s=10.0), run(10.1)]
    found = compare_repeats(side, side)
    assert (found.a_s, found.change) == (pytest.approx(10.05), 0)


def test_a_checkpoint_in_the_only_run_is_no_change() -> None:
    found = compare_repeats([run(10.0)], [run(30.0, steady_s=10.0)])
    assert (found.change, found.call) == (2.0, "none")
    assert compare_repeats([run(10.0)], [run(30.0, steady_s=12.0)]).call == "slower"


def test_the_rank_test_is_added_from_four_runs_per_side() -> None:
    a, b = [run(10 + each / 100) for each in range(4)], [run(11 + each / 100) for each in range(4)]
    assert compare_repeats(a, b).p == pytest.approx(0.0286, abs=1e-4)
    assert compare_repeats(a[:3], b).p is None


@pytest.mark.slow
@pytest.mark.xdist_group("scipy")  # which takes seconds to import
@pytest.mark.parametrize(
    ("sizes", "method"),
    [((4, 4), "exact"), ((4, 7), "exact"), ((6, 5), "exact"), ((300, 4), "exact"), ((150, 300), "asymptotic")],
)
def test_the_rank_test_is_that_of_scipy(sizes: tuple[int, int], method: str) -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    draw = random.Random(2)
    for shift in (0.0, 0.5, 2.0):
        a, b = ([draw.gauss(mean, 1) for _ in range(size)] for mean, size in zip((0, shift), sizes, strict=True))
        expected = float(stats.mannwhitneyu(a, b, method=method).pvalue)
        assert mann_whitney_p(a, b) == pytest.approx(expected)


def test_the_rank_test_of_many_values_uses_the_normal_distribution() -> None:
    """The exact test of 300 values per side takes hours."""
    a, b = [float(each) for each in range(300)], [each + 30.5 for each in range(300)]
    above = sum(each > other for each in a for other in b)
    deviation = (300 * 300 * 601 / 12) ** 0.5
    expected = 2 * NormalDist().cdf((above - 300 * 300 / 2 + 0.5) / deviation)
    assert mann_whitney_p(a, b) == pytest.approx(expected)
    assert mann_whitney_p(b, a) == pytest.approx(expected)
    assert mann_whitney_p([1.0] * 300, [1.0] * 300) == 1.0


def test_equal_values_share_their_rank() -> None:
    a, b = [1.0, 1.0, 2.0, 3.0], [1.0, 3.0, 3.0, 4.0]
    ranks = {1.0: 2.0, 2.0: 4.0, 3.0: 6.0, 4.0: 8.0}
    sums = [sum(choice) for choice in itertools.combinations([ranks[each] for each in (*a, *b)], 4)]
    mean, observed = sum(sums) / len(sums), sum(ranks[each] for each in a)
    assert mann_whitney_p(a, b) == pytest.approx(sum(abs(s - mean) >= abs(observed - mean) for s in sums) / len(sums))
    assert mann_whitney_p([1.0] * 4, [1.0] * 4) == 1.0


@pytest.mark.parametrize(("runs", "most_false", "least_found"), [(1, 0.05, 0.8), (3, 0.04, 0.93)])
def test_equal_runs_are_rarely_called_different_and_three_percent_is_found(
    runs: int, most_false: float, least_found: float
) -> None:
    draw, pairs = random.Random(4), 1000

    def side(mean_s: float) -> list[Repeat]:
        return [run(mean_s * draw.gauss(1, 0.004)) for _ in range(runs)]

    false = sum(compare_repeats(side(10.0), side(10.0)).call != "none" for _ in range(pairs))
    found = sum(compare_repeats(side(10.0), side(10.3)).call == "slower" for _ in range(pairs))
    assert false / pairs <= most_false
    assert found / pairs >= least_found
