"""The quickstart of the README: MaxText trains on this machine's CPU."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from parts.deadline import DEADLINE_S
from parts.pages import blocks, matches
from parts.screen import Screen
from parts.training import no_other_training
from parts.wheels import PRODUCT, ROOT, EmptyEnvironment

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.xdist_group("maxtext"),
]  # the environment is created once


FILE = "tests/test_quickstart.py"
QUICKSTART = str(ROOT / "examples/quickstart.toml")


def llmb(*arguments: str, home: Path, timeout_s: float = DEADLINE_S) -> subprocess.CompletedProcess[str]:
    with no_other_training():
        return subprocess.run(
            [sys.executable, "-m", "llmb", *arguments],
            env={**os.environ, "LLMB_HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


@pytest.fixture(scope="module")
def quickstart(maxtext_home: Path) -> Screen:
    """Run the quickstart to its end in a terminal."""
    env = {**os.environ, "LLMB_HOME": str(maxtext_home)}
    with no_other_training():
        screen = Screen([sys.executable, "-m", "llmb", "run", QUICKSTART], env=env)
        assert screen.end() == 0, screen.text
    return screen


def test_the_quickstart_prints_what_the_pages_show(quickstart: Screen) -> None:
    pages = ("README.md", "docs/quickstart.md")
    [expected] = {each.text for page in pages for each in blocks(page) if each.note("tested by") == FILE}
    _, header, shown = "\n".join((*quickstart.history, *quickstart.lines)).rpartition("run      ")
    shown = re.sub(r"\b\w{5}-llama2", "725jp-llama2", header + shown)
    assert matches(expected.partition("  record")[0], shown.partition("  record")[0], numbers_differ=True), shown


def test_the_quickstart_trains_and_reports_its_speed(quickstart: Screen, maxtext_home: Path) -> None:
    run_id = re.findall(r"\b\w{5}-llama2[\w.-]*", quickstart.text)[-1]
    run = json.loads(llmb("show", run_id, "--json", home=maxtext_home).stdout)
    assert run["state"] == "completed"
    assert run["metrics"]["mfu"] > 0
    assert run["metrics"]["tokens_per_s"] == pytest.approx(
        run["metrics"]["seq_len"] * run["metrics"]["global_batch_size"] / run["metrics"]["step_time_s"]
    )
    assert run["metrics"]["days_per_1t_tokens"] is None
    steps = list(csv.DictReader((Path(run["directory"]) / "steps.csv").read_text().splitlines()))
    assert [int(step["step"]) for step in steps] == list(range(50))
    # the FLOPs that MaxText logs, and those of the recipe's formula
    counted = run["metrics"]["flops_per_sequence"] * run["metrics"]["global_batch_size"] / 1e12
    for step in steps[6:]:
        tflops = counted / float(step["time_s"])
        assert float(step["tflops_per_gpu"]) == pytest.approx(tflops, abs=0.51e-3 + 0.01 * tflops)  # three decimals


def test_the_quickstart_runs_from_wheels(maxtext_home: Path, wheels: dict[str, Path], tmp_path: Path) -> None:
    environment = EmptyEnvironment(tmp_path)
    environment.install(*(wheels[folder.name] for folder in PRODUCT))
    quickstart = shutil.copy(ROOT / "examples/quickstart.toml", tmp_path)  # outside of the repository
    fewer = ("--set", "workload.steps=8", "--set", "measure.window=[4, 7]")
    with no_other_training():
        done = environment.llmb(
            "run", quickstart, *fewer, "--json", env={"LLMB_HOME": str(maxtext_home)}, timeout_s=DEADLINE_S
        )
    assert done.returncode == 0, done.stderr
    [run] = json.loads(done.stdout)["runs"]
    assert (run["state"], run["steps_done"]) == ("completed", 8)
    assert run["metrics"]["tokens_per_s"] > 0


def test_the_record_is_a_spec_of_the_same_job(quickstart: Screen, maxtext_home: Path) -> None:
    prefix = re.findall(r"\b\w{5}-llama2", quickstart.text)[-1]
    [record] = (maxtext_home / "runs").glob(f"{prefix}*")
    done = llmb("run", str(record / "run.toml"), "--dry-run", "--json", home=maxtext_home)
    assert done.returncode == 0, done.stderr
    [again] = json.loads(done.stdout)["runs"]
    assert re.sub(r"\b\w{5}-llama2", prefix, again["script"]) == (record / "job.sh").read_text()


def test_two_processes_train_one_model(maxtext_home: Path) -> None:
    overrides = ("--set", "workload.gpus=2", "--set", "workload.steps=6", "--set", "measure.window=[3, 5]")
    done = llmb("run", str(ROOT / "examples/quickstart.toml"), *overrides, "--json", home=maxtext_home)
    assert done.returncode == 0, done.stdout + done.stderr
    [run] = json.loads(done.stdout)["runs"]
    assert run["metrics"]["global_batch_size"] == 8
    assert {log.name for log in (Path(run["directory"]) / "logs").iterdir()} == {"train.0.0.log", "train.0.1.log"}


def test_a_maxtext_that_fails_at_start_is_reported_with_its_error(maxtext_home: Path) -> None:
    done = llmb(
        "run", str(ROOT / "examples/quickstart.toml"), "--set", "framework.config.no_such_key=1", home=maxtext_home
    )
    assert done.returncode == 1
    assert "phase train, rank 0: exit code 1" in done.stdout
    assert "no_such_key" in done.stdout
