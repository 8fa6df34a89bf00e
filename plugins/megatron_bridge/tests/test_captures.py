"""Captures with nsys in release 26.06: traced events, and the release of nsys over the one in the image."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb import Mount, Paths, Run, Task
from llmb_megatron_bridge.plugin import MegatronBridge

LoadRun = Callable[..., "Run[Any]"]
CAPTURE = {"tool": "nsys"}


# LAUNCH of each workload: --nsys_trace
@pytest.mark.parametrize(
    ("recipe", "dtype", "gpus", "events"),
    [
        ("llama3.1-8b", "fp8", 8, "cuda,nvtx"),
        ("llama3.1-70b", "fp8", 64, "cuda,nvtx"),
        ("llama3.1-405b", "fp8", 256, "cuda,nvtx"),
        ("qwen3-30b-a3b", "bf16", 8, "cuda,nvtx"),
        ("qwen3-235b-a22b", "bf16", 256, "cuda,nvtx"),
        ("gpt-oss-120b", "bf16", 64, "cuda,nvtx"),
        ("deepseek-v3", "bf16", 128, "cuda"),
        ("kimi-k2", "fp8", 256, "cuda"),
        ("nemotron-h-56b", "fp8", 32, "cuda"),
        ("nemotron3-nano-30b", "bf16", 8, "cuda"),
        ("nemotron3-super-120b", "bf16", 64, "cuda"),
    ],
)
def test_a_capture_traces_the_events_of_the_publisher(
    load_run: LoadRun, recipe: str, dtype: str, gpus: int, events: str
) -> None:
    run = load_run(f"{recipe}@26.06", "gb300", dtype, gpus, profile=CAPTURE)
    [train] = MegatronBridge().build_job(run).phases
    assert train.command[train.command.index("-t") + 1] == events


def nsys_of(run: Run[Any]) -> tuple[list[Task], list[Mount]]:
    """Return the tasks that install nsys, and the mounts over the nsys of the image."""
    dataset = MegatronBridge().prepare_dataset(run)
    tasks = [task for task in dataset.tasks if task.key.startswith("nsys")] if dataset else []
    return tasks, [mount for mount in MegatronBridge().build_job(run).mounts if "/cache/nsys/" in mount.source]


# tools.nsys in metadata.yaml of each workload
@pytest.mark.parametrize(
    ("recipe", "dtype", "gpus", "gpu_types"),
    [
        ("deepseek-v3", "bf16", 256, {"gb300", "gb200", "b300", "b200"}),
        ("kimi-k2", "fp8", 256, {"gb200", "b300"}),
        ("qwen3-30b-a3b", "bf16", 64, {"gb300", "gb200", "b200"}),
        ("qwen3-235b-a22b", "bf16", 256, {"gb300", "gb200", "b200"}),
        ("gpt-oss-120b", "bf16", 64, {"gb300", "b300"}),
        ("nemotron3-nano-30b", "bf16", 64, {"gb300", "gb200", "b300", "b200"}),
        ("nemotron3-super-120b", "bf16", 64, {"gb300", "gb200", "b300", "b200"}),
        ("nemotron-h-56b", "fp8", 64, set()),
        ("llama3.1-70b", "fp8", 128, set()),
    ],
)
def test_a_capture_uses_the_publishers_nsys(
    load_run: LoadRun, recipe: str, dtype: str, gpus: int, gpu_types: set[str]
) -> None:
    for gpu_type in ("gb300", "gb200", "b300", "b200"):
        tasks, mounts = nsys_of(load_run(f"{recipe}@26.06", gpu_type, dtype, gpus, profile=CAPTURE))
        assert (len(tasks), len(mounts)) == ((1, 1) if gpu_type in gpu_types else (0, 0))
        for task, mount in zip(tasks, mounts, strict=True):
            assert ("linux-sbsa-public" in str(task.work)) == gpu_type.startswith("gb")
            assert mount.source in task.check
            assert mount.target.startswith("/usr/local/cuda-13.")


def test_only_captures_in_the_recipes_own_image_replace_nsys(load_run: LoadRun) -> None:
    point = ("deepseek-v3@26.06", "gb300", "bf16", 128)
    for tables in ({}, {"profile": CAPTURE, "workload": {"image": "mine/nemo:1"}}):
        assert nsys_of(load_run(*point, **tables)) == ([], [])


def test_cupti_is_mounted_into_the_mounted_nsys(load_run: LoadRun) -> None:
    mounts = MegatronBridge().build_job(load_run("gpt-oss-120b@26.06", "gb300", "bf16", 64, profile=CAPTURE)).mounts
    nsys, cupti = mounts[-2:]
    assert cupti.target.startswith(f"{nsys.target}/")


INSTALLER = """\
[ "$1 $3 $4 $5" = "--target -- -noprompt -targetpath" ] || exit 9
mkdir -p "$6/bin"
%s
"""


@pytest.mark.real
@pytest.mark.skipif(not shutil.which("curl"), reason="curl, which downloads nsys, is not installed")
@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ('echo nsys >"$6/bin/nsys"', None),
        ("true", "installed no bin/nsys"),
        ("exit 3", "failed with exit code 3"),
    ],
)
def test_nsys_is_installed_once(load_run: LoadRun, tmp_path: Path, line: str, cause: str | None) -> None:
    installer = tmp_path / "installer.run"
    installer.write_text(INSTALLER % line)
    run = load_run("deepseek-v3@26.06", "gb300", "bf16", 128, profile=CAPTURE)
    release = {**run.settings["nsys_release"], "url": installer.as_uri()}
    paths = Paths(run="/r", cache=str(tmp_path / "ca che" / "cache"))
    [task], [mount] = nsys_of(attrs.evolve(run, settings={**run.settings, "nsys_release": release}, paths=paths))

    def bash(script: object) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"]}
        return subprocess.run(["bash", "-c", str(script)], env=env, capture_output=True, text=True, check=False)

    assert bash(task.check).returncode != 0
    done = bash(task.work)
    assert (done.returncode == 0, bash(task.check).returncode == 0) == (cause is None, cause is None)
    assert [each.name for each in Path(mount.source).parent.iterdir()] == ([] if cause else [Path(mount.source).name])
    if cause:
        assert done.stderr.splitlines()[-1] == f"the installer from {installer.as_uri()} {cause}"
