"""End-to-end run in a real container: MaxText trains in an image that the test builds, without a registry."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import DEADLINE_S, wait_until
from parts.docker import Docker
from parts.image import import_venv
from parts.training import no_other_training

ROOT = Path(__file__).parents[1]
IMAGE = "llmb-maxtext:cpu"
SHORT = ("--set", "workload.steps=12", "--set", "measure.window=[6, 11]")
IN_IMAGE = ("--set", f"workload.image={IMAGE}", "--set", "target.container.ulimits={}")
QUICKSTART = str(ROOT / "examples/quickstart.toml")

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.xdist_group("maxtext"),
]  # the environment is created once


def start(home: Path, *arguments: str, **env: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "llmb", "run", QUICKSTART, *SHORT, *arguments, "--json"]
    env = {**os.environ, "LLMB_HOME": str(home), **env}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, out + err
    [run] = json.loads(out)["runs"]
    return dict(run)


@pytest.fixture(scope="module")
def outside(maxtext_home: Path) -> dict[str, Any]:
    """Run the quickstart in its virtual environment."""
    with no_other_training():
        return end(start(maxtext_home))


@pytest.fixture(scope="module")
def engine(maxtext_home: Path, outside: dict[str, Any], docker_session: Docker) -> Iterator[Docker]:
    """Start Docker with an image of that environment, its Python and its libraries."""
    assert outside["state"] == "completed"
    [venv] = (maxtext_home / "work/cache/venv").glob("venv-*")
    import_venv(venv, IMAGE, {**os.environ, **docker_session.env})
    yield docker_session
    docker_session("image", "rm", IMAGE)


def columns_and_steps(run: dict[str, Any]) -> tuple[list[str], list[str]]:
    rows = list(csv.reader((Path(run["directory"]) / "steps.csv").read_text().splitlines()))
    return rows[0], [row[0] for row in rows[1:]]


def test_maxtext_in_an_image_survives_the_daemon_and_has_the_same_record_as_without_an_image(
    maxtext_home: Path, outside: dict[str, Any], engine: Docker
) -> None:
    with no_other_training():
        running = start(maxtext_home, *IN_IMAGE, **engine.env)
        log = wait_for_log(maxtext_home, b"completed step: 1,")
        engine.kill()
        seen = log.stat().st_size
        wait_until(
            lambda: log.stat().st_size > seen or b"completed step: 11," in log.read_bytes(), "training continues"
        )
        engine.start()
        inside = end(running)
    assert inside["state"] == "completed"
    assert inside.keys() == outside.keys()
    assert columns_and_steps(inside) == columns_and_steps(outside)
    same = ("global_batch_size", "seq_len", "flops_per_sequence")
    assert {name: inside["metrics"][name] for name in same} == {name: outside["metrics"][name] for name in same}
    assert inside["metrics"]["mfu"] > 0  # its value depends on the load while the peak was measured
    logs = [{log.name for log in (Path(run["directory"]) / "logs").iterdir()} for run in (inside, outside)]
    assert logs == [{"out.log", "train.0.0.log"}, {"train.0.0.log"}]
    assert "docker does not respond" in (Path(inside["directory"]) / "logs/out.log").read_text()
    assert engine.leftovers == []


def wait_for_log(home: Path, text: bytes) -> Path:
    """Return the log of the newest run once it contains a text."""

    def find() -> Path | None:
        newest = max((home / "work/runs").iterdir(), key=lambda each: each.stat().st_mtime)
        log = newest / "logs/train.0.0.log"
        return log if log.exists() and not (newest / "ended").exists() and text in log.read_bytes() else None

    return Path(wait_until(find, repr(text)))
