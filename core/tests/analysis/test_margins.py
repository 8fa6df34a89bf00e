"""The margin of a mean of few runs, of a change between two groups of runs, and the tables of Student's t."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from llmb.analysis.margins import Group, margin_of_change, margin_of_mean, t95, t975
from llmb.analysis.repeats_to_settle import repeats_to_settle


def group(*times_s: float, noise: float = 0.0) -> Group:
    return Group(times_s=times_s, noises=[noise] * len(times_s))


@pytest.mark.xdist_group("scipy")  # which takes a second to import
@pytest.mark.parametrize(("table", "quantile"), [(t95, 0.95), (t975, 0.975)])
def test_the_tables_are_those_of_scipy(table: Callable[[int], float], quantile: float) -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    for freedom in range(3, 200):
        assert table(freedom) == pytest.approx(float(stats.t.ppf(quantile, freedom)), abs=1e-3)


@pytest.mark.parametrize(
    ("times_s", "noise", "margin"),
    [
        ([10.0], 0, 0.0118),
        ([10.37], 0, 0.0122),
        ([10.62], 0, 0.0125),
        ([10.5], 0, 0.0124),
        ([10.4, 10.4], 0, 0.0068),
        ([10.4, 10.5, 10.45], 0, 0.0060),
        ([10.0, 10.3, 10.1], 0, 0.0121),
        ([10.2, 10.9, 10.4, 10.6], 0, 0.0208),
        ([10.0], 0.035, 0.0576),
        ([11.0], 0.02, 0.0362),
    ],
)
def test_the_margin_grows_with_the_spread_of_runs_and_the_noise_of_steps(
    times_s: Sequence[float], noise: float, margin: float
) -> None:
    runs = group(*times_s, noise=noise)
    assert margin_of_mean(runs) * runs.mean_s / 10 == pytest.approx(margin, abs=1e-4)


@pytest.mark.parametrize(
    ("times_s", "noise", "more"),
    [
        ([10.38], 0, 1),
        ([10.62], 0, 1),
        ([10.5], 0, 0),
        ([10.4, 10.5, 10.45], 0, 1),
        ([10.2, 10.9, 10.4, 10.6], 0, 0),
        ([10.0], 0.035, 1),
    ],
)
def test_more_runs_settle_what_is_not_too_close(times_s: Sequence[float], noise: float, more: int) -> None:
    runs = group(*times_s, noise=noise)
    assert repeats_to_settle(runs, abs(runs.mean_s - 10.5) / runs.mean_s) == more


@pytest.mark.parametrize(
    ("before", "after", "change", "margin"),
    [
        ([14.78], [15.10], 0.0217, 0.0225),
        ([14.78], [15.20], 0.0284, 0.0225),
        ([14.75, 14.78, 14.81], [15.82, 15.90, 15.98], 0.0758, 0.0084),
    ],
)
def test_the_margin_of_a_change(before: Sequence[float], after: Sequence[float], change: float, margin: float) -> None:
    a, b = group(*before), group(*after)
    assert b.mean_s / a.mean_s - 1 == pytest.approx(change, abs=1e-4)
    assert margin_of_change(a, b) == pytest.approx(margin, abs=1e-4)


def test_noisy_steps_widen_the_margin_of_a_change() -> None:
    assert margin_of_change(group(10, noise=0.03), group(10, noise=0.04)) == pytest.approx(1.96 * 0.05)
