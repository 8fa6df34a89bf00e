"""Job status from the files of a job's directory and the queue."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from llmb import JobHandle, JobStatus
from llmb.hosts.local_host import LocalHost
from llmb_slurm.plugin import Slurm

DISABLED = "echo 'Slurm accounting storage is disabled' >&2; exit 1"
REFUSED = "echo 'Connection refused' >&2; exit 1"


def poll(folder: Path, monkeypatch: pytest.MonkeyPatch, row: str, ended: str) -> JobStatus:
    """Return the status of job 8, with this row in the queue and this end of its second attempt."""
    squeue = folder / "bin/squeue"
    squeue.parent.mkdir()
    squeue.write_text(f"#!/bin/sh\necho '{row}'\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{squeue.parent}:{os.environ['PATH']}")
    (folder / "claim").symlink_to("8")
    (folder / "attempt").write_text("1\n")
    (folder / "ended").write_text(ended)
    return poll_again(folder)


def poll_again(folder: Path) -> JobStatus:
    return Slurm().poll([JobHandle(id="a", directory=str(folder), job_id="8")], LocalHost())["a"]


def test_a_job_that_reappears_in_the_queue_is_no_longer_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue may drop a job long before accounting lists it."""
    (tmp_path / "missing").touch()
    os.utime(tmp_path / "missing", (0, 0))
    assert poll(tmp_path, monkeypatch, "8|FAILED|1|256|0|(null)|None|", "").cause == "failed"
    (tmp_path / "bin/squeue").write_text("#!/bin/sh\n")
    (tmp_path / "bin/sacct").write_text("#!/bin/sh\n")
    (tmp_path / "bin/sacct").chmod(0o755)
    assert poll_again(tmp_path).reason == "waiting for Slurm's accounting"


@pytest.mark.parametrize(
    ("sacct", "missing_s", "state", "reason"),
    [
        ("exit 0", 50, "unknown", "waiting for Slurm's accounting"),
        ("exit 0", 70, "ended", "neither Slurm's queue nor its accounting contains the end of the job"),
        (DISABLED, 50, "unknown", "waiting for the end of the job, which Slurm's queue no longer lists"),
        (DISABLED, 70, "ended", "Slurm's queue no longer lists the job, and its accounting is disabled"),
        (REFUSED, 110, "unknown", "waiting for Slurm's accounting, which does not respond"),
        (REFUSED, 130, "ended", "Slurm's queue no longer lists the job, and its accounting does not respond"),
    ],
)
def test_a_purged_job_without_a_known_end_is_lost_within_two_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sacct: str, missing_s: int, state: str, reason: str
) -> None:
    poll(tmp_path, monkeypatch, "8|FAILED|1|256|0|(null)|None|", "")
    for name, text in (("squeue", ""), ("sacct", sacct)):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "missing").touch()
    since = time.time() - missing_s
    os.utime(tmp_path / "missing", (since, since))
    status = poll_again(tmp_path)
    assert (status.state, status.cause, status.reason) == (state, "lost" if state == "ended" else "", reason)


@pytest.mark.parametrize(
    ("ended", "cause", "attempt"),
    [
        ("8\t0\t\n", "completed", 1),
        ("8\t1\tphase train: exit code 1\n", "launch failure", 2),
        ("8\t1\tphase train: 10%\f20%\x1c\u2028\n", "launch failure", 2),
    ],
)
def test_a_job_held_for_a_failed_launch_is_completed_if_its_script_exited_with_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: str, cause: str, attempt: int
) -> None:
    status = poll(tmp_path, monkeypatch, "8|PENDING|2|0|0|(null)|launch failed requeued held|", ended)
    assert status.unsatisfiable  # so core cancels it
    assert (status.cause, status.attempt) == (cause, attempt)


def test_a_requeued_job_has_not_ended_even_if_its_last_attempt_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = poll(tmp_path, monkeypatch, "8|PENDING|2|0|0|(null)|BeginTime|", "8\t143\t\n")
    assert (status.state, status.cause, status.attempt) == ("pending", "", 2)
