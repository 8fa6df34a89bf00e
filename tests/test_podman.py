"""Podman instead of Docker: the same runs in containers of a real Podman."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import DEADLINE_S
from parts.docker import Podman, write_tiny_root

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("podman")]  # its image is imported once

IMAGE = "localhost/llmb-tiny:1"


@pytest.fixture(scope="module")
def podman_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    if lacking := [name for name in ("podman", "busybox") if shutil.which(name) is None] or os.geteuid():
        pytest.skip(f"it needs root, podman and busybox-static ({lacking})")
    root = tmp_path_factory.mktemp("image")
    write_tiny_root(root, {})
    tar = root.with_suffix(".tar")
    subprocess.run(["tar", "-C", str(root), "-cf", str(tar), "."], check=True)
    with Podman() as engine:
        engine("import", str(tar), IMAGE)
        yield engine


@pytest.fixture
def podman(podman_module: Podman, monkeypatch: pytest.MonkeyPatch) -> Iterator[Podman]:
    for name, value in podman_module.env.items():
        monkeypatch.setenv(name, value)
    yield podman_module
    assert podman_module.containers == []


def tables(toy: Any, image: str = IMAGE, **framework: Any) -> dict[str, dict[str, Any]]:
    return {
        "workload": {"image": image},
        "framework": framework,
        "target": {"runtime": "podman", "container": {"ulimits": {}}},
        "mounts": {str(toy.folder): str(toy.folder)},
    }


@pytest.mark.smoke
def test_a_run_in_podman_has_the_same_record(toy: Any, podman: Podman) -> None:
    run = toy.run(**tables(toy, warm_up=True, output=True))
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert toy.steps_of(Path(run["directory"])) == [1, 2, 3, 4, 5]


def test_the_cause_names_the_failed_rank(toy: Any, podman: Podman) -> None:
    run = toy.run(**tables(toy, end="exit 3", end_step=2))
    assert run["failure"]["cause"].startswith("phase train, rank 0: exit code 3")


def test_cancel_stops_the_container(toy: Any, podman: Podman) -> None:
    running = toy.start("run", toy.spec(**tables(toy, gate=str(toy.gate))), "--json")
    toy.wait_for_journal("begin")
    [cancelled] = toy.runs("cancel", toy.wait_for_state("running"))
    assert cancelled["state"] == "cancelled"
    out, _ = running.communicate(timeout=DEADLINE_S)
    assert json.loads(out)["runs"] == [cancelled]


def test_an_image_without_bash_is_reported(toy: Any, podman: Podman, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    subprocess.run(["tar", "-C", str(tmp_path / "root"), "-cf", str(tmp_path / "root.tar"), "."], check=True)
    podman("import", str(tmp_path / "root.tar"), "localhost/llmb-empty:1")
    run = toy.run(**tables(toy, "localhost/llmb-empty:1"))
    assert "the image has no bash" in run["failure"]["cause"]
    podman("image", "rm", "localhost/llmb-empty:1")
