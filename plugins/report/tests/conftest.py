"""Reports on recorded runs, as pages."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from parts.recorded_runs import PUBLISHED_S, record_runs

import llmb

NODES = {"host": [f"n{number:03}" for number in range(1, 9)], "driver": "570.124.06", "nccl": "2.27.3"}

Render = Callable[..., str]


@pytest.fixture
def render() -> Render:
    """Return a function that writes the HTML report on runs."""
    renderer = llmb.PluginRegistry().report_renderer(".html")
    return lambda *runs: renderer(llmb.report(runs))


def step_times(factor: float, count: int = 50, *, seed: int = 1) -> Sequence[float]:
    """Return noisy step times around a multiple of the published one, with a slow first step."""
    noise = random.Random(seed)
    return [7 * PUBLISHED_S, *(factor * PUBLISHED_S * (1 + noise.gauss(0, 0.004)) for _ in range(count - 1))]


@pytest.fixture
def campaign() -> list[str]:
    """Record runs of every kind: repeats, a pass, a fail, undecided, a failure, several sizes and dtypes."""
    failure = llmb.Failure(cause="NCCL timeout", evidence="[rank37]: Watchdog caught <timeout>", line=4, remedy="a & b")
    return [
        *record_runs([step_times(1.003), step_times(1.006, seed=2)], provenance=NODES),
        *record_runs([step_times(1.05)], workload={"gpus": 128}, provenance=NODES),
        *record_runs([step_times(1.2)], workload={"gpus": 256}, provenance=NODES | {"driver": "580.65.06"}),
        *record_runs([step_times(1.0, 17)], state="failed", failure=failure, workload={"gpus": 512}),
        *record_runs([step_times(0.62)], workload={"dtype": "fp8"}, provenance=NODES),
    ]
