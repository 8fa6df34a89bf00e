"""Downloads from a hub, here a copy of its pages in a folder."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from llmb import RunPlan, Task

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="curl, which downloads the files, is not installed")

TEXTS, CARD, OTHERS = "en/c4-train.00000-of-01024.json.gz", "README.md", "multilingual/c4-de.json.gz"


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """Create a copy of the hub's pages for allenai/c4."""
    listed = tmp_path / "hub/api/datasets/allenai/c4"
    listed.parent.mkdir(parents=True)
    listed.write_text(
        json.dumps({"sha": "c0ffee", "siblings": [{"rfilename": each} for each in (TEXTS, CARD, OTHERS)]})
    )
    for name in (TEXTS, CARD, OTHERS):
        file = tmp_path / "hub/datasets/allenai/c4/resolve/c0ffee" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"content of {name}")
    return tmp_path / "hub"


@pytest.fixture
def task(plan_run: Callable[..., RunPlan], tmp_path: Path) -> Task:
    """Return the task of the dataset, with a folder of this test instead of the cache."""
    workload = {"recipe": "torchtitan/deepseek-v3", "gpu_type": "b200", "dtype": "bf16", "gpus": 256}
    [found] = [each.task for each in plan_run(workload=workload).tasks if each.task.kind == "dataset allenai/c4"]
    work, check = (str(text).replace("/w/cache", str(tmp_path)) for text in (found.work, found.check))
    return attrs.evolve(found, work=work, check=check)


def bash(script: object, hub: Path = Path("/none")) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "HF_ENDPOINT": hub.as_uri()}
    return subprocess.run(["bash", "-c", str(script)], env=env, capture_output=True, text=True, check=False)


def test_the_english_texts_are_downloaded_once(task: Task, hub: Path, tmp_path: Path) -> None:
    assert bash(task.check).returncode
    done = bash(task.work, hub)
    assert done.returncode == 0, done.stderr
    assert bash(task.check).returncode == 0
    folder = tmp_path / "datasets/c4"
    assert (folder / TEXTS).read_text() == f"content of {TEXTS}"
    assert (folder / CARD).exists()
    assert not (folder / OTHERS).exists()


def test_the_output_counts_the_files_that_are_complete(task: Task, hub: Path, tmp_path: Path) -> None:
    counts = ["0 of 2 files", "1 of 2 files", "2 of 2 files"]
    assert bash(task.work, hub).stdout.splitlines() == counts
    (tmp_path / "datasets/c4" / CARD).unlink()
    assert bash(task.work, hub).stdout.splitlines() == counts


def test_a_failed_download_is_not_complete_and_fetches_only_what_is_missing(
    task: Task, hub: Path, tmp_path: Path
) -> None:
    card = hub / "datasets/allenai/c4/resolve/c0ffee" / CARD
    card.rename(tmp_path / CARD)
    failed = bash(task.work, hub)
    assert "not all files of datasets/allenai/c4 could be downloaded" in failed.stderr.splitlines()[-1]
    assert bash(task.check).returncode
    (tmp_path / CARD).rename(card)
    (card.parent / TEXTS).write_text("changed")
    assert bash(task.work, hub).returncode == 0
    assert bash(task.check).returncode == 0
    assert (tmp_path / "datasets/c4" / TEXTS).read_text() == f"content of {TEXTS}"


def test_the_error_names_a_hub_that_does_not_respond(task: Task) -> None:
    failed = bash(task.work)
    assert failed.returncode
    assert "does not list the files of datasets/allenai/c4" in failed.stderr.splitlines()[-1]
