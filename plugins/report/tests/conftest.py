"""Reports on recorded runs, as pages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from parts.recorded_runs import PUBLISHED_S, record_runs

import llmb

NODES = {"host": [f"n{number:03}" for number in range(1, 9)], "driver": "570.124.06", "nccl": "2.27.3"}


def write_page(*runs: str) -> str:
    """Return the HTML report on runs."""
    return llmb.PluginRegistry().report_renderer(".html")(llmb.report(runs))


def step_times(factor: float, count: int = 50, *, seed: int = 1) -> Sequence[float]:
    """Return noisy step times around a multiple of the published one, with a slow first step."""
    noise = random.Random(seed)
    return [7 * PUBLISHED_S, *(factor * PUBLISHED_S * (1 + noise.gauss(0, 0.004)) for _ in range(count - 1))]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], str]:
    """Record the campaign once for all tests, which only read it. Return its home, its ids and the report on it."""
    home = tmp_path_factory.mktemp("campaign")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMB_HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        ids = record_campaign()
        return home, ids, write_page(*ids)


@pytest.fixture
def campaign(recorded: tuple[Path, list[str], str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the ids of runs of every kind."""
    monkeypatch.setenv("LLMB_HOME", str(recorded[0]))
    return recorded[1]


@pytest.fixture
def page(recorded: tuple[Path, list[str], str]) -> str:
    """Return the report on runs of every kind."""
    return recorded[2]


def record_campaign() -> list[str]:
    """Record repeats, a pass, a fail, undecided, a failure, several sizes and dtypes."""
    failure = llmb.Failure(cause="NCCL timeout", evidence="[rank37]: Watchdog caught <timeout>", line=4, remedy="a & b")
    return [
        *record_runs([step_times(1.003), step_times(1.006, seed=2)], provenance=NODES),
        *record_runs([step_times(1.05)], workload={"gpus": 128}, provenance=NODES),
        *record_runs([step_times(1.2)], workload={"gpus": 256}, provenance=NODES | {"driver": "580.65.06"}),
        *record_runs([step_times(1.0, 17)], state="failed", failure=failure, workload={"gpus": 512}),
        *record_runs([step_times(0.62)], workload={"dtype": "fp8"}, provenance=NODES),
    ]
