"""A full disk: detached jobs still end, report the full disk, and leave nothing incomplete."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts import disks
from parts.deadline import wait_until

from llmb import JobHandle, JobStatus, Script, Venv, cancel_detached, poll_detached, submit_detached, venv_task
from llmb.hosts.local_host import LocalHost

HOST = LocalHost()
FILL = "cat /dev/zero >{file}"

FAKE_UV = """#!/bin/bash
case $1 in
  venv) mkdir -p "${{!#}}/bin" ;;
  pip) {install} ;;
esac
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount an empty file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with disks.small_disk(folder, "1m"):
        yield folder


class Job:
    """A detached job on that disk."""

    def __init__(self, disk: Path, text: str) -> None:
        self.folder = disk / "job"
        self.handle = JobHandle(id="job", directory=str(self.folder))
        submit_detached([Script(id="job", directory=str(self.folder), text=text)], HOST)

    def ended(self) -> JobStatus:
        def end() -> JobStatus | None:
            status = poll_detached([self.handle], HOST)["job"]
            return status if status.state == "ended" else None

        return wait_until(end)

    @property
    def lives(self) -> bool:
        return subprocess.run(["flock", "-n", str(self.folder / "alive"), "true"]).returncode != 0


@pytest.mark.real
def test_a_job_that_fills_its_disk_ends_and_reports_the_full_disk(disk: Path) -> None:
    job = Job(disk, f": >begun\n{FILL.format(file='filler')}\nexit 3\n")
    end = job.ended()
    assert (end.exit_code, end.cause) == (3, "failed")
    assert end.reason.endswith(f"{disk}/job: No space left on device")
    wait_until(lambda: not job.lives)


@pytest.mark.real
def test_a_job_on_a_full_disk_can_be_cancelled(disk: Path) -> None:
    job = Job(disk, f": >begun\n{FILL.format(file='filler')}\n: >full\nsleep 1000\n")
    wait_until((job.folder / "full").exists)
    cancel_detached([job.handle], HOST)
    assert job.ended().cause == "cancelled"
    wait_until(lambda: not job.lives)


def create_venv(disk: Path, tmp_path: Path, install: str) -> tuple[Job, Path]:
    """Start the creation of an environment with a uv that runs ``install``. Return the job and the environment."""
    uv = tmp_path / "uv"
    uv.write_text(FAKE_UV.format(install=install))
    uv.chmod(0o755)
    task = venv_task(Venv(lock="", python=">=3.11"), f"{disk}/cache", uv=str(uv), python=sys.executable)
    assert isinstance(task.work, str)
    return Job(disk, f": >begun\n{task.work}"), disk / "cache/venv" / task.key


@pytest.mark.real
def test_a_full_disk_removes_the_environment_and_reports_the_error_of_uv(disk: Path, tmp_path: Path) -> None:
    filler = f"{disk}/cache/venv/*/bin/filler"
    message = "error: failed to copy: No space left on device (os error 28)"
    job, venv = create_venv(disk, tmp_path, f"{FILL.format(file=filler)}; echo '{message}' >&2; exit 2")
    end = job.ended()
    assert (end.exit_code, end.reason) == (2, message)
    assert not venv.exists()


def test_cancel_removes_an_incomplete_environment(tmp_path: Path) -> None:
    job, venv = create_venv(tmp_path, tmp_path, f": >{tmp_path}/installing; sleep 1000")
    wait_until((tmp_path / "installing").exists)
    cancel_detached([job.handle], HOST)
    assert job.ended().cause == "cancelled"
    assert not venv.exists()
