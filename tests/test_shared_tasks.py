"""Requirements of a shared task: free space on the target, and secrets that no other job receives."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from parts.command_line import command_line

from llmb import SpecError

SECRET = "hf_0123456789"
ON = pytest.mark.parametrize("on", ["host", "scheduler"])


def task(on: str = "host", **more: Any) -> dict[str, Any]:
    return {"task": "data", "task_on": on, **{f"task_{name}": value for name, value in more.items()}}


def everything_below(folder: Path) -> str:
    return "\n".join(file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file())


# Space


@ON
def test_a_task_without_space_is_not_started_and_its_error_names_both_sizes(toy: Any, on: str) -> None:
    run = toy.run(framework=task(on, space_gb=1e9))

    assert run["state"] == "failed"
    assert toy.journal() == []
    told = r"toy data could not be created: it needs 1e\+09 GB in .*/work, but only [\d.]+ GB are free"
    assert re.search(told, run["failure"]["cause"])
    assert run["failure"]["remedy"].startswith("free space on that disk (`du -xh ")


@ON
def test_a_task_with_space_is_started(toy: Any, on: str) -> None:
    assert toy.run(framework=task(on, space_gb=1e-6))["state"] == "completed"
    assert len(toy.journal("task-end")) == 1


def test_a_complete_task_needs_no_space(toy: Any) -> None:
    assert toy.run(framework=task())["state"] == "completed"
    assert toy.run(framework=task(space_gb=1e9))["state"] == "completed"


def test_two_tasks_that_fit_alone_do_not_fit_together(toy: Any) -> None:
    most = 0.7 * shutil.disk_usage(toy.folder).free / 1e9
    spec = toy.spec(framework={"task_space_gb": most}, sweep={"framework.task": ["one", "two"]})
    states = {run["state"]: run for run in toy.runs("run", spec)}

    assert set(states) == {"completed", "failed"}
    assert "of which tasks that run now take" in states["failed"]["failure"]["cause"]


def test_a_dry_run_prints_the_space_and_the_secrets(toy: Any) -> None:
    spec = toy.spec(framework=task(space_gb=100, secrets=["HF_TOKEN"]))
    document = json.loads(toy.llmb("run", spec, "--dry-run", "--json").stdout)
    told = toy.llmb("run", spec, "--dry-run").stdout

    assert [(each["space_gb"], each["secrets"]) for each in document["preparations"].values()] == [(100, ["HF_TOKEN"])]
    assert "# to create first: toy data" in told
    assert "# needs HF_TOKEN in the environment of llmb, where it is not set" in told
    assert "needs 100 GB of free space and HF_TOKEN in the environment" in told


# Secrets


@ON
def test_a_task_receives_its_secret_which_is_written_nowhere(
    toy: Any, on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_LOGIN", SECRET)  # a name that does not look like a secret
    spent = toy.folder / "spent"
    run = toy.run(framework=task(on, secrets=["SITE_LOGIN"], end=f'echo "${{#SITE_LOGIN}}" >{spent}'))

    assert run["state"] == "completed"
    assert spent.read_text() == f"{len(SECRET)}\n"
    assert SECRET not in everything_below(toy.home)


def test_a_missing_secret_of_a_task_is_an_error_before_anything_is_recorded(toy: Any) -> None:
    with pytest.raises(SpecError, match="HF_TOKEN is not set, but the toy data needs it"):
        toy.run(framework=task(secrets=["HF_TOKEN"]))

    assert (toy.records, toy.journal()) == ([], [])


def test_a_complete_task_needs_no_secret(toy: Any) -> None:
    assert toy.run(framework=task())["state"] == "completed"
    assert toy.run(framework=task(secrets=["HF_TOKEN"]))["state"] == "completed"


def test_attaching_without_the_secret_is_an_error_that_does_not_change_the_run(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    run_id = toy.record(framework=task(secrets=["HF_TOKEN"]))
    monkeypatch.delenv("HF_TOKEN")
    done = toy.llmb("attach")
    assert done.returncode == 2
    assert "HF_TOKEN is not set, but the toy data needs it" in done.stderr

    monkeypatch.setenv("HF_TOKEN", SECRET)
    [run] = toy.runs("attach", run_id)
    assert run["state"] == "completed"


# Failures


def test_a_task_of_several_phases_names_the_log_of_the_last_that_wrote_any(toy: Any) -> None:
    run = toy.run(framework=task("scheduler", end="echo the disk is full >&2; exit 3"))

    assert re.search(r"the disk is full \(log: .*/logs/data\.0\.0\.log\)", run["failure"]["cause"])


@ON
def test_the_log_of_a_failed_task_is_that_of_the_runs_that_need_it(
    toy: Any, on: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = toy.run(framework=task(on, end="echo preparing; echo the disk is full >&2; exit 3"))
    assert command_line(capsys)("logs", failing["run_id"]).out.endswith("preparing\nthe disk is full\n")


def test_llmb_logs_prints_the_cause_of_a_run_without_a_log(toy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    refused = toy.run(framework=task(space_gb=1e9))
    done = command_line(capsys)("logs", refused["run_id"])
    assert (done.out, done.err.count("\n")) == ("", 1)
    assert f"{refused['run_id']} (failed) has no logs: toy data could not be created: it needs" in done.err


def test_a_failed_task_with_a_known_cause_has_a_remedy(toy: Any) -> None:
    run = toy.run(framework=task(end="echo cp: No space left on device >&2; exit 1"))

    _, sizes, _, again, _ = run["failure"]["remedy"].split("`")
    shown = subprocess.run(["bash", "-c", sizes], capture_output=True, text=True, check=True).stdout
    assert f"{toy.home}/work/runs\n" in shown
    done = toy.llmb(*shlex.split(again)[1:], "--dry-run")
    assert (done.returncode, "/path/to/folder/runs/" in done.stdout) == (0, True), done.stderr
