"""Fixtures that the tests of several plugins share: runs from specs, and comparison with golden texts."""

from __future__ import annotations

import difflib
import functools
import os
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import tomli_w
import uv

import llmb

MANY_NODES = """\
import attrs

from llmb import SchedulerHooks, hookimpl


@attrs.frozen
class Options:
    pass


class ManyNodes(SchedulerHooks[Options]):
    options = Options

    @hookimpl
    def build_job(self): raise NotImplementedError
    submit = poll = cancel = build_job
"""
"""Scheduler without an implementation, for loading large jobs."""

UPDATE = "LLMB_UPDATE"

LoadRun = Callable[..., "llmb.Run[Any]"]


@pytest.fixture
def load_run_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadRun:
    """Return a function that loads one run of a recipe, always with the same id and directories."""
    site = tmp_path / "site"
    info = site / "llmb_many_nodes-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "llmb_many_nodes.py").write_text(MANY_NODES)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llmb-many-nodes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[llmb.schedulers]\nmany_nodes = llmb_many_nodes:ManyNodes\n")
    monkeypatch.syspath_prepend(str(site))

    def load(
        recipe: str, gpu_type: str, dtype: str, gpus: int, *overrides: str, **tables: dict[str, Any]
    ) -> llmb.Run[Any]:
        workload = {"recipe": recipe, "gpu_type": gpu_type, "dtype": dtype, "gpus": gpus, **tables.pop("workload", {})}
        file = tmp_path / "spec.toml"
        file.write_text(tomli_w.dumps({"workload": workload, "target": {"scheduler": "many_nodes"}, **tables}))
        [placed] = llmb.load(file, overrides=overrides).runs
        return attrs.evolve(placed.run, id="RUN", paths=llmb.Paths(run="/w/runs/RUN", cache="/w/cache"))

    return load


@pytest.fixture
def golden_changes() -> Callable[[str, Path], str]:
    """Return a function that compares a text with a golden file and returns the changes, or "".

    If LLMB_UPDATE is set, the function first writes the file.
    """

    def compare(text: str, file: Path) -> str:
        if os.environ.get(UPDATE):
            file.write_text(text)
        kept = file.read_text() if file.exists() else ""
        if text == kept:
            return ""
        changes = difflib.unified_diff(kept.splitlines(), text.splitlines(), file.name, "now", lineterm="")
        advice = f"if the change is intended, run the test with {UPDATE}=1 and review {file.name} in git"
        return "\n".join([*changes, "", advice])

    return compare


@pytest.fixture(scope="session")
def python_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return a function that returns a Python with one more package. Skip the test if the package is not available."""

    @functools.cache
    def install(requirement: str) -> str:
        folder = tmp_path_factory.mktemp("python")
        venv.create(folder, symlinks=True)
        python = str(folder / "bin/python")
        command = [uv.find_uv_bin(), "pip", "install", "--quiet", "--python", python, requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{requirement} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        return python

    return install
