"""The attempts of jobs, and who cancelled them, from what sacct prints."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

from llmb import Attempt, JobHandle, JobHistory
from llmb.hosts.local_host import LocalHost
from llmb_slurm.plugin import Slurm

PREEMPTED = "96|a|PREEMPTED|1763689697|1763689698|node1"
AGAIN = "96|a|COMPLETED|1763689711|1763689800|node2"


def history(folder: Path, monkeypatch: pytest.MonkeyPatch, *sacct: str) -> JobHistory:
    """Return the history of job 96 if sacct runs these lines of bash."""
    folder.mkdir(exist_ok=True)
    for name, text in (("sacct", "\n".join(sacct)), ("scontrol", 'printf "%s\\n" $3')):
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Slurm().history([JobHandle(id="a", directory=str(folder), job_id="96")], LocalHost())["a"]


def test_each_start_is_an_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = history(tmp_path, monkeypatch, f"echo '{PREEMPTED}'", f"echo '{AGAIN}'")
    assert found.attempts == (
        Attempt(attempt=0, start=1763689697.0, end=1763689698.0, nodes=("node1",), cause="preempted"),
        Attempt(attempt=1, start=1763689711.0, end=1763689800.0, nodes=("node2",), cause="completed"),
    )


def test_a_start_that_never_had_nodes_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = "96|a|COMPLETED|1763689711|1763689711|None assigned"
    assert [each.nodes for each in history(tmp_path, monkeypatch, f"echo '{row}'").attempts] == [()]


def test_an_earlier_job_with_the_same_number_is_another_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = history(tmp_path, monkeypatch, "echo '96|other|COMPLETED|1|2|node1'", f"echo '{AGAIN}'")
    assert [each.start for each in found.attempts] == [1763689711.0]


def test_accounting_may_not_know_the_name_of_the_job_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = history(tmp_path, monkeypatch, f"echo '{AGAIN}'".replace("|a|", "|allocation|"))
    assert [each.start for each in found.attempts] == [1763689711.0]


def test_the_user_who_cancelled_a_job_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = f"96|a|CANCELLED by {os.getuid()}|1763689697|1763689698|node1"
    assert history(tmp_path, monkeypatch, f"echo '{row}'").cancelled_by == getpass.getuser()


def test_a_job_that_was_cancelled_in_the_queue_has_no_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = "96|a|CANCELLED by 4294901|None|1763689698|None assigned"
    assert history(tmp_path, monkeypatch, f"echo '{row}'") == JobHistory(cancelled_by="user 4294901")


def test_accounting_that_lags_is_queried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lagging = (
        f"[ -e {tmp_path}/seen ] || {{ touch {tmp_path}/seen; echo '96|a|RUNNING|1763689711|Unknown|node2'; exit; }}"
    )
    found = history(tmp_path, monkeypatch, lagging, f"echo '{AGAIN}'")
    assert (found.pending, [each.end for each in found.attempts]) == (True, [None])
    found = history(tmp_path, monkeypatch, lagging, f"echo '{AGAIN}'")
    assert (found.pending, [each.end for each in found.attempts]) == (False, [1763689800.0])


@pytest.mark.parametrize("output", ["", "96|other|COMPLETED|1|2|node1", "96|a|PENDING|Unknown|Unknown|None assigned"])
def test_accounting_may_not_know_the_job_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    assert history(tmp_path, monkeypatch, f"echo '{output}'") == JobHistory(pending=True)


@pytest.mark.parametrize(
    ("sacct", "note"),
    [
        ("echo 'Slurm accounting storage is disabled' >&2; exit 1", "accounting is disabled"),
        ("echo 'Connection refused' >&2; exit 1", "accounting does not respond"),
    ],
)
def test_a_note_explains_missing_accounting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sacct: str, note: str
) -> None:
    assert note in history(tmp_path, monkeypatch, sacct).note
