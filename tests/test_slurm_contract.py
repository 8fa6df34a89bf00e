"""The part of the contract of a scheduler that runs jobs, on a real Slurm cluster of two nodes or more."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb import FrozenMap
from llmb.testing import LocalHost
from llmb.testing.scheduler_runs import RunContract

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.mark.usefixtures("slurm")
class TestSlurm(RunContract):
    scheduler = "slurm"
    target = FrozenMap({"exclusive": False, "mem": "200M"})
    run_on = LocalHost()

    @pytest.fixture(autouse=True)
    def _own_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
