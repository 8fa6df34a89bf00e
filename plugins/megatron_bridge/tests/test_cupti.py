"""The CUPTI library of captures with release 25.10, and with GPT-OSS of 26.06."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb import Paths, Run, Task
from llmb_megatron_bridge.plugin import MegatronBridge

LoadRun = Callable[..., "Run[Any]"]
NSYS = "/usr/local/cuda-12.9/NsightSystems-cli-2025.4.1"
NSYS_OF_GPT_OSS = "/usr/local/cuda-13.0/NsightSystems-cli-2026.1.0"


def task_of(run: Run[Any]) -> Task | None:
    dataset = MegatronBridge().prepare_dataset(run)
    return next((task for task in dataset.tasks if task.key.startswith("cupti")), None) if dataset else None


@pytest.mark.parametrize(
    ("recipe", "dtype", "nsys"),
    [("llama3.1-70b@25.10.00", "fp8", NSYS),
     ("llama3.1-70b@25.10.02", "fp8", NSYS),
     ("gpt-oss-120b@26.06", "bf16", NSYS_OF_GPT_OSS)],
)  # fmt: skip
@pytest.mark.parametrize(
    ("gpu_type", "path"),
    [("h100", "target-linux-x64/libcupti.so.13.0"),
     ("gb300", "target-linux-sbsa-armv8/libcupti-sbsa.so.13.0")],
)  # fmt: skip
def test_a_capture_mounts_the_library_of_the_processor(
    load_run: LoadRun, recipe: str, dtype: str, nsys: str, gpu_type: str, path: str
) -> None:
    run = load_run(recipe, gpu_type, dtype, 64, profile={"tool": "nsys"})
    task, mount = task_of(run), MegatronBridge().build_job(run).mounts[-1]

    assert task is not None
    assert (mount.target, mount.read_only) == (f"{nsys}/{path}", True)
    assert mount.source in task.check
    assert ("sbsa" in str(task.work)) == (gpu_type == "gb300")


def test_only_captures_in_the_recipes_own_image_have_the_library(load_run: LoadRun) -> None:
    profile = {"tool": "nsys"}
    for run in (
        load_run("llama3.1-70b@25.10", "h100", "fp8", 64),
        load_run("llama3.1-70b@25.12", "h100", "fp8", 64, profile=profile),
        load_run("llama3.1-70b@26.06", "h100", "fp8", 64, profile=profile),
        load_run("llama3.1-70b@25.10", "h100", "fp8", 64, profile=profile, workload={"image": "mine/nemo:1"}),
    ):
        assert task_of(run) is None
        assert not [mount for mount in MegatronBridge().build_job(run).mounts if "cupti" in mount.source]


@pytest.mark.real
@pytest.mark.skipif(not shutil.which("curl"), reason="curl, which downloads the library, is not installed")
# the name is the one in cli/llmb-install/docs/tools.md at tag v25.10.02 of NVIDIA/dgxc-benchmarking
@pytest.mark.parametrize("content", ["libcupti.so.2025.3.1", "README"])
def test_the_library_is_downloaded_once(load_run: LoadRun, tmp_path: Path, content: str) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / content).write_text("ELF")
    archive = tmp_path / "archive.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(tmp_path / "lib", "cuda_cupti-archive/lib")
    run = load_run("llama3.1-70b@25.10", "h100", "fp8", 64, profile={"tool": "nsys"})
    cupti = {**run.settings["cupti"], "url": archive.as_uri()}
    paths = Paths(run="/r", cache=str(tmp_path / "ca che"))
    run = attrs.evolve(run, settings={**run.settings, "cupti": cupti}, paths=paths)
    task = task_of(run)
    assert task is not None

    def bash(script: object) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"]}
        return subprocess.run(["bash", "-c", str(script)], env=env, capture_output=True, text=True, check=False)

    assert bash(task.check).returncode != 0
    library = Path(MegatronBridge().build_job(run).mounts[-1].source)
    dead, living = Path(f"{library}.partial.1"), Path(f"{library}.partial.2")
    dead.mkdir(parents=True)
    living.mkdir()
    os.utime(dead, (0, 0))
    done = bash(task.work)
    assert [dead.exists(), living.exists()] == [False, True]
    if content == "README":
        assert (done.returncode, done.stderr.splitlines()[-1]) == (
            1, f"the archive from {archive.as_uri()} contains no libcupti.so",
        )  # fmt: skip
        return
    assert done.returncode == 0, done.stderr
    assert "100.0%" in done.stderr  # the last state of the bar, which llmb shows during a download
    assert bash(task.check).returncode == 0
    assert library.read_text() == "ELF"
