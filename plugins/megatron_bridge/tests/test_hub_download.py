"""Files of a model at Hugging Face, which the scripts read without internet access."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb import Paths, Run, Task
from llmb_megatron_bridge.plugin import MegatronBridge

LoadRun = Callable[..., "Run[Any]"]
QWEN = "Qwen/Qwen3-30B-A3B"


def tasks_of(run: Run[Any]) -> tuple[Task, ...]:
    dataset = MegatronBridge().prepare_dataset(run)
    return dataset.tasks if dataset else ()


def bash(script: object, **env: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], **env}
    return subprocess.run(["bash", "-c", str(script)], env=env, capture_output=True, text=True, check=False)


def hub_with(folder: Path, *names: str) -> str:
    """Create a copy of the hub's pages for one model, and return the address of the copy."""
    (folder / "api/models/Qwen").mkdir(parents=True)
    answer = {"sha": "ad44e777", "siblings": [{"rfilename": name} for name in names]}
    (folder / f"api/models/{QWEN}").write_text(json.dumps(answer))
    files = folder / QWEN / "resolve/ad44e777"
    files.mkdir(parents=True)
    for name in names:
        (files / name).write_text(f"content of {name}")
    return folder.as_uri()


@pytest.mark.real
@pytest.mark.skipif(not shutil.which("curl"), reason="curl, which downloads the files, is not installed")
def test_all_files_except_the_weights_are_in_the_cache_of_the_job(load_run: LoadRun, tmp_path: Path) -> None:
    run = load_run("qwen3-30b-a3b@26.06", "h100", "bf16", 16)
    run = attrs.evolve(run, paths=Paths(run="/r", cache=str(tmp_path / "ca che")))
    [task] = tasks_of(run)
    hub = hub_with(tmp_path / "hub", "config.json", "merges.txt", "model-00001.safetensors")

    assert bash(task.check).returncode != 0
    done = bash(task.work, HF_ENDPOINT=hub)
    assert done.returncode == 0, done.stderr
    assert bash(task.check).returncode == 0
    model = Path(MegatronBridge().build_job(run).env["HF_HOME"]) / "hub/models--Qwen--Qwen3-30B-A3B"
    snapshot = model / "snapshots" / (model / "refs/main").read_text()
    assert {path.name: path.read_text() for path in snapshot.iterdir()} == {
        "config.json": "content of config.json",
        "merges.txt": "content of merges.txt",
    }


@pytest.mark.real
@pytest.mark.skipif(not shutil.which("curl"), reason="curl, which downloads the files, is not installed")
def test_a_hub_out_of_reach_is_the_cause_and_leaves_nothing(load_run: LoadRun, tmp_path: Path) -> None:
    run = load_run("qwen3-30b-a3b@26.06", "h100", "bf16", 16)
    [task] = tasks_of(attrs.evolve(run, paths=Paths(run="/r", cache=str(tmp_path))))
    done = bash(task.work, HF_ENDPOINT=(tmp_path / "none").as_uri())
    assert (done.returncode, bash(task.check).returncode) == (1, 1)
    assert f"does not list the files of {QWEN}: curl failed" in done.stderr.splitlines()[-1]
    assert "copy the folder from another machine" in done.stderr.splitlines()[-1]


def test_recipes_with_the_configuration_of_their_model_download_nothing(load_run: LoadRun) -> None:
    assert tasks_of(load_run("llama3.1-8b@26.06", "h100", "bf16", 16)) == ()
    assert tasks_of(load_run("nemotron-h-56b@26.06", "h100", "fp8", 32)) == ()
