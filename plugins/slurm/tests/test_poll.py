"""What a job left in its directory, beside what the queue says of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmb import JobHandle, JobStatus
from llmb.hosts.local import LocalHost
from llmb_slurm.plugin import Slurm


def poll(folder: Path, monkeypatch: pytest.MonkeyPatch, row: str, ended: str) -> JobStatus:
    """How job 8 stands, whose second attempt ended so, where the queue has this row."""
    squeue = folder / "bin/squeue"
    squeue.parent.mkdir()
    squeue.write_text(f"#!/bin/sh\necho '{row}'\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{squeue.parent}:{os.environ['PATH']}")
    (folder / "claim").symlink_to("8")
    (folder / "attempt").write_text("1\n")
    (folder / "ended").write_text(ended)
    return ask(folder)


def ask(folder: Path) -> JobStatus:
    return Slurm().poll([JobHandle(id="a", directory=str(folder), job_id="8")], LocalHost())["a"]


def test_a_job_that_is_seen_again_is_missing_only_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue may forget a job long before the accounts know of it."""
    (tmp_path / "missing").touch()
    os.utime(tmp_path / "missing", (0, 0))
    assert poll(tmp_path, monkeypatch, "8|FAILED|1|256|0|(null)|None|", "").cause == "failed"
    (tmp_path / "bin/squeue").write_text("#!/bin/sh\n")
    (tmp_path / "bin/sacct").write_text("#!/bin/sh\n")
    (tmp_path / "bin/sacct").chmod(0o755)
    assert ask(tmp_path).reason == "waiting for Slurm's accounts"


@pytest.mark.parametrize(
    ("ended", "cause", "attempt"),
    [
        ("8\t0\t\n", "completed", 1),
        ("8\t1\tphase train: exit status 1\n", "launch failure", 2),
        ("8\t1\tphase train: 10%\f20%\x1c\u2028\n", "launch failure", 2),
    ],
)
def test_a_job_held_for_a_failed_launch_counts_as_completed_where_it_came_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: str, cause: str, attempt: int
) -> None:
    told = poll(tmp_path, monkeypatch, "8|PENDING|2|0|0|(null)|launch failed requeued held|", ended)
    assert told.unsatisfiable  # so that it is cancelled
    assert (told.cause, told.attempt) == (cause, attempt)


def test_a_job_that_is_requeued_has_not_ended_whatever_its_last_attempt_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = poll(tmp_path, monkeypatch, "8|PENDING|2|0|0|(null)|BeginTime|", "8\t143\t\n")
    assert (told.state, told.cause, told.attempt) == ("pending", "", 2)
