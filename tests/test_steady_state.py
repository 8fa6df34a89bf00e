"""The steady state of real logs, which their authors describe."""

from __future__ import annotations

from pathlib import Path

import pytest

import llmb
from llmb.analysis.steady_state import SteadyState, find_steady_state

SHARED = Path(__file__).parents[2] / "shared" / "logs"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared logs are not here")

FRAMEWORKS = {"megatron": "megatron_bridge", "maxtext": "maxtext"}


def steady_state(log: str) -> SteadyState:
    folder, number = log.split("/")
    [path] = SHARED.glob(f"{folder}/{number}-*.log")
    found = find_steady_state(llmb.parse(path, framework=FRAMEWORKS[folder]).steps)
    assert found
    return found


@pytest.mark.parametrize(
    ("log", "first", "mean_s", "spikes", "period", "share"),
    [
        ("megatron/29", 7, 2.226, [11, 16], None, 0.073),
        ("maxtext/01", 4, 0.2497, [100, 200, 300, 400, 500], 100, 0.11),
        ("megatron/15", 3, 25.692, [], None, 0),
        ("megatron/13", 3, 18.00, [101, 201, 301, 401], 100, 0.02),
    ],
)
def test_the_steady_state_of_a_log(
    log: str, first: int, mean_s: float, spikes: list[int], period: int | None, share: float
) -> None:
    found = steady_state(log)
    assert (found.first, [spike.step for spike in found.spikes], found.spike_period) == (first, spikes, period)
    assert found.step_time_s == pytest.approx(mean_s, rel=3e-4)
    assert found.spike_share == pytest.approx(share, abs=0.0015)


def test_a_clock_that_changes_during_a_run_is_a_drift() -> None:
    assert steady_state("megatron/13").drift == pytest.approx(-0.0275, abs=5e-4)
