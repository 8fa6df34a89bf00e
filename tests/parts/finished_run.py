"""A run that several tests read, each with a record of its own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from parts.toy import TOY, ToyRuns

import llmb


class FinishedRun:
    """A run of the toy framework that has completed in a folder, once for all tests."""

    def __init__(self, folder: Path, **tables: dict[str, Any]) -> None:
        self._toy, self._unchanged = ToyRuns(folder), folder / "unchanged"
        with pytest.MonkeyPatch.context() as patch:
            self._use(patch)
            [result] = llmb.run(llmb.load(self._toy.spec("one", **tables)))
        assert result.metrics
        self._run_id = result.run_id
        shutil.copytree(self._toy.home, self._unchanged)

    def restore(self, monkeypatch: pytest.MonkeyPatch) -> str:
        """Write the record again, which the test may change. Return the id of the run."""
        shutil.rmtree(self._toy.home)
        shutil.copytree(self._unchanged, self._toy.home)
        self._use(monkeypatch)
        return self._run_id

    def _use(self, patch: pytest.MonkeyPatch) -> None:
        patch.syspath_prepend(str(TOY))
        patch.setenv("LLMB_HOME", str(self._toy.home))
