"""Job status from the files of a job's directory and the queue."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from pathlib import Path

import pytest

from llmb import JobHandle, JobStatus, TargetError
from llmb.hosts.local_host import LocalHost
from llmb_slurm.plugin import Slurm
from llmb_slurm.sbatch_directives import job_mark

RUNNING = "8|RUNNING|0|0|0|a|p|None||/w|(null)|"
DISABLED = "echo 'Slurm accounting storage is disabled' >&2; exit 1"
REFUSED = "echo 'Connection refused' >&2; exit 1"


def poll(folder: Path, monkeypatch: pytest.MonkeyPatch, row: str, ended: str) -> JobStatus:
    """Return the status of job 8, with this row in the queue and this end of its second attempt."""
    squeue = folder / "bin/squeue"
    squeue.parent.mkdir(exist_ok=True)
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
    assert poll(tmp_path, monkeypatch, "8|FAILED|1|256|0|a|p|None||/w|(null)|", "").cause == "failed"
    (tmp_path / "bin/squeue").write_text("#!/bin/sh\n")
    (tmp_path / "bin/sacct").write_text("#!/bin/sh\n")
    (tmp_path / "bin/sacct").chmod(0o755)
    assert poll_again(tmp_path).reason == "waiting for Slurm's accounting"


def test_a_job_whose_directory_cannot_be_written_is_lost_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without accounting, llmb would wait for ever for the end of a job that filled the disk."""
    directory = tmp_path / "runs/a"
    directory.mkdir(parents=True)
    full = 'echo "touch: cannot touch: No space left on device" >&2; exit 1'
    install(tmp_path, monkeypatch, squeue="exit 0", sacct=DISABLED, touch=full)
    assert poll_again(directory).state == "unknown"
    os.utime(directory, (0, 0))
    assert (poll_again(directory).state, poll_again(directory).cause) == ("ended", "lost")


def test_any_number_of_jobs_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if their ids are longer than an argument of a command can be."""
    rows = 'for id in {10000000..10019999}; do echo "$id|RUNNING|0|0|0|$id|p|None||/w|(null)|"; done'
    install(tmp_path, monkeypatch, squeue=rows)
    handles = [JobHandle(id=each, directory="/w", job_id=each) for each in map(str, range(10_000_000, 10_020_000))]
    assert {status.state for status in Slurm().poll(handles, LocalHost()).values()} == {"running"}


def test_a_host_without_awk_does_not_lose_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bin_folder := tmp_path / "bin").mkdir()
    (bin_folder / "awk").write_text("#!/bin/sh\nexit 127\n")
    (bin_folder / "awk").chmod(0o755)
    with pytest.raises(TargetError, match=r"cannot query Slurm \(squeue\)"):
        poll(tmp_path, monkeypatch, RUNNING, "")


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
def test_a_purged_job_without_a_known_end_position_lost_within_two_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sacct: str, missing_s: int, state: str, reason: str
) -> None:
    poll(tmp_path, monkeypatch, "8|FAILED|1|256|0|a|p|None||/w|(null)|", "")
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
    status = poll(tmp_path, monkeypatch, "8|PENDING|2|0|0|a|p|launch failed requeued held||/w|(null)|", ended)
    assert status.unsatisfiable  # so core cancels it
    assert (status.cause, status.attempt) == (cause, attempt)


def test_a_requeued_job_has_not_ended_even_if_its_last_attempt_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = poll(tmp_path, monkeypatch, "8|PENDING|2|0|0|a|p|BeginTime||/w|(null)|", "8\t143\t\n")
    assert (status.state, status.cause, status.attempt) == ("pending", "", 2)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """Put programs on the PATH."""
    (folder / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    for name, bash in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/bash\n{bash}\n")
        (folder / "bin" / name).chmod(0o755)


VARIABLES = ("SLURM_CLUSTERS", "SQUEUE_PARTITION", "SACCT_FORMAT", "SCANCEL_STATE")


def test_variables_of_the_login_do_not_change_the_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that SQUEUE_PARTITION hides would be lost, and one that SCANCEL_STATE excludes would run on."""
    for name in (*VARIABLES, "SLURM_CONF", "SLURM_CONF_SERVER"):
        monkeypatch.setenv(name, "set")
    record = f"compgen -e >>{tmp_path}/exported"
    install(tmp_path, monkeypatch, squeue=record, sacct=record, scancel=record)
    poll_again(tmp_path)
    with (tmp_path / "bin/squeue").open("a") as squeue:
        squeue.write(f"echo '{RUNNING}'\n")
    Slurm().cancel([JobHandle(id="a", directory=str(tmp_path), job_id="8")], LocalHost())
    exported = (tmp_path / "exported").read_text().split()
    assert not {*VARIABLES} & {*exported}
    assert exported.count("SLURM_CONF") == 4  # squeue and sacct, then squeue and scancel
    assert exported.count("SLURM_CONF_SERVER") == 4


def test_accounting_that_hangs_does_not_hide_the_end_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ended").write_text("8\t3\tphase train: exit code 3\n")
    install(
        tmp_path,
        monkeypatch,
        squeue="",
        sacct="exec sleep 600",
        timeout=f'shift; exec {shutil.which("timeout")} 0.1 "$@"',
    )
    assert (poll_again(tmp_path).cause, poll_again(tmp_path).exit_code) == ("failed", 3)


def test_the_clock_of_a_file_server_does_not_end_the_wait_for_accounting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sets the time of a file that is created on it. Here, that clock is 10 minutes behind."""
    install(
        tmp_path, monkeypatch, squeue="", sacct="", date="printf '%(%s)T + 600\\n' | ( read -r now; echo $((now)) )"
    )
    assert poll_again(tmp_path).state == "unknown"
    assert poll_again(tmp_path).state == "unknown"


def test_a_job_without_an_id_is_the_last_one_that_carries_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that was submitted again had another job, which squeue lists after those that have not ended."""
    mark = job_mark("a", str(tmp_path))
    rows = f"10|PENDING|0|0|0|a|p|Priority||/w|{mark}; text of the site|\n9|FAILED|0|256|0|a|p|None||/w|{mark}|"
    install(tmp_path, monkeypatch, squeue=f"echo '{rows}'")
    status = Slurm().poll([JobHandle(id="a", directory=str(tmp_path))], LocalHost())["a"]
    assert (status.state, status.job_id) == ("pending", "10")


@pytest.mark.parametrize(
    ("reason", "is_error"),
    [
        ("Invalid job id specified", False),
        ("Job/step already completing or completed", False),
        ("Job can not be altered now, try again later", True),
        ("Unable to contact slurm controller (connect failure)", True),
    ],
)
def test_a_cancellation_that_fails_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, is_error: bool
) -> None:
    """Only jobs that have ended are left alone."""
    ended = "scancel: error: Kill job error on job id 7: Job/step already completing or completed"
    scancel = f"printf '%s\\n' '{ended}' 'scancel: error: Kill job error on job id 8: {reason}' >&2; exit 1"
    install(tmp_path, monkeypatch, squeue=f"echo '{RUNNING}'", scancel=scancel)
    with pytest.raises(TargetError, match=re.escape(reason)) if is_error else contextlib.nullcontext():
        Slurm().cancel([JobHandle(id="a", directory=str(tmp_path), job_id="8")], LocalHost())


@pytest.mark.parametrize(
    ("name", "comment", "is_own"),
    [
        ("a", "mark", True),
        ("renamed", "mark", True),
        ("a", "comment of the site", True),
        ("a", "comment\n| of the site", True),
        ("renamed", "mark; text of the site", True),
        ("a", "llmb a 0123456789ab", True),  # submitted with another path of the same directory
        ("b", "(null)", False),
        ("b", "llmb b 0123456789ab", False),
    ],
)
def test_an_id_that_belongs_to_another_job_is_neither_followed_nor_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, comment: str, is_own: bool
) -> None:
    """A controller that lost its state gives the ids of earlier jobs to new ones."""
    comment = comment.replace("mark", job_mark("a", str(tmp_path)))
    row = f"8|RUNNING|0|0|0|{name}|p|None||/w|{comment}|"
    cancelled = tmp_path / "cancelled"
    install(tmp_path, monkeypatch, squeue=f"echo '{row}'", sacct="", scancel=f'echo "$@" >{cancelled}')
    assert poll_again(tmp_path).state == ("running" if is_own else "unknown")
    Slurm().cancel([JobHandle(id="a", directory=str(tmp_path), job_id="8")], LocalHost())
    assert cancelled.exists() == is_own


@pytest.mark.parametrize("folder", ["/another/path/to/{}", "/work/b"])
def test_a_job_whose_name_and_comment_were_changed_is_followed_and_cancelled_by_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    row = f"8|RUNNING|0|0|0|renamed|p|None||{folder.format(tmp_path.name)}|comment of the site|"
    cancelled = tmp_path / "cancelled"
    install(tmp_path, monkeypatch, squeue=f"echo '{row}'", sacct="", scancel=f'echo "$@" >{cancelled}')
    is_own = folder != "/work/b"
    assert poll_again(tmp_path).state == ("running" if is_own else "unknown")
    Slurm().cancel([JobHandle(id="a", directory=str(tmp_path), job_id="8")], LocalHost())
    assert cancelled.exists() == is_own


@pytest.mark.parametrize(
    ("names", "cause"),
    [
        ("a b", "failed"),
        ("b a", "failed"),
        ("a allocation", "cancelled"),
        ("b", "completed"),
        ("b renamed", "failed"),
    ],
)
def test_the_end_of_another_job_with_the_same_id_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str, cause: str
) -> None:
    """A job that accounting has not named yet may be the next attempt."""
    (tmp_path / "ended").write_text("8\t0\t\n")
    states = {"a": "FAILED|3:0", "b": "TIMEOUT|0:0", "allocation": "CANCELLED by 0|0:0", "renamed": "FAILED|3:0"}
    folders = {"a": str(tmp_path), "renamed": f"/another/path/to/{tmp_path.name}"}
    rows = "\n".join(f"8|{states[name]}|0:0|None|{name}|p|{folders.get(name, '')}" for name in names.split())
    install(tmp_path, monkeypatch, squeue="", sacct=f"echo '{rows}'")
    assert poll_again(tmp_path).cause == cause
