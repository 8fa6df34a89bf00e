"""Detached jobs on this machine: started once, polled to their end, cancelled, and lost if they are killed."""

from __future__ import annotations

import os
import platform
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from parts import control_groups
from parts.deadline import DEADLINE_S, wait_until

from llmb.hosts import detached
from llmb.hosts.local_host import LocalHost
from llmb.values.errors import TargetError, UnknownOutcomeError
from llmb.values.job import Script
from llmb.values.job_status import JobHandle, JobStatus

HOST = LocalHost()


class Job:
    """A job in a folder that counts its starts."""

    def __init__(self, folder: Path, text: str, **more: Any) -> None:
        self.folder = folder
        self.script = Script(id="job", directory=str(folder), text=f"echo start >>starts\n: >begun\n{text}\n", **more)
        self.handle = JobHandle(id="job", directory=str(folder))

    def submit(self) -> None:
        detached.submit_detached([self.script], HOST)

    @property
    def status(self) -> JobStatus:
        return detached.poll_detached([self.handle], HOST)["job"]

    @property
    def starts(self) -> int:
        file = self.folder / "starts"
        return len(file.read_text().splitlines()) if file.exists() else 0

    @property
    def supervisor(self) -> int:
        return int(
            wait_until(lambda: (self.folder / "started").exists() and self.folder / "started").read_text().split()[0]
        )

    def ended(self) -> JobStatus:
        return wait_until(lambda: status if (status := self.status).state == "ended" else None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create files of another user")
def test_no_job_starts_in_the_directory_of_another_user(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    job = Job(tmp_path, "true")
    with pytest.raises(TargetError, match=f"{tmp_path} on {platform.node()} belongs to another user; remove it"):
        job.submit()
    assert job.status.state == "absent"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "it's a job"


def test_a_running_job_has_the_time_until_its_limit(folder: Path) -> None:
    job = Job(folder, "until [ -e gate ]; do sleep 0.02; done", time_limit_s=600)
    job.submit()
    left_s = wait_until(lambda: job.status.time_left_s)
    assert 600 - DEADLINE_S < left_s <= 600
    (folder / "gate").touch()
    assert job.ended().time_left_s is None


@pytest.mark.parametrize("text", ["x[$(touch {})]", "three hours", "08"])
def test_nothing_in_the_file_of_the_time_limit_is_executed(text: str, folder: Path, tmp_path: Path) -> None:
    gate, planted = shlex.quote(str(tmp_path / "gate")), tmp_path / "planted"
    limit = shlex.quote(text.format(planted))
    job = Job(folder, f"echo {limit} >time_limit; : >written; until [ -e {gate} ]; do sleep 0.02; done")
    job.submit()
    wait_until((folder / "written").exists)
    assert (job.status.state, job.status.time_left_s) == ("running", None)
    assert not planted.exists()
    (tmp_path / "gate").touch()
    job.ended()


def test_a_job_that_was_never_submitted_is_absent(folder: Path) -> None:
    assert Job(folder, "").status == JobStatus(state="absent")


@pytest.mark.parametrize(
    ("text", "exit_code", "cause", "reason"),
    [
        ("true", 0, "completed", ""),
        ("echo no such thing >&2; exit 3", 3, "failed", "no such thing"),
        ("echo 'phase one: bad' >failed; exit 3", 3, "failed", "phase one: bad"),
        ("printf 'a\\tb\\nc' >failed; exit 1", 1, "failed", "a b c"),
        ("printf 'a\\rb\\vc\\fd\\x1ce' >failed; exit 1", 1, "failed", "a b c d e"),
        ("printf '10%%\\r20%%\\rboom\\n'; exit 1", 1, "failed", "boom"),
        ("printf 'a\\fb\\342\\200\\250c\\n'; exit 1", 1, "failed", "a b\u2028c"),
        ("kill -9 $$", 137, "failed", "the job's script was killed by signal 9"),
    ],
)
def test_the_end_of_a_job_is_kept(
    folder: Path, text: str, exit_code: int, cause: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")  # bash then recognises control characters in ASCII only
    job = Job(folder, text)
    job.submit()
    end = job.ended()
    assert (end.exit_code, end.cause, end.reason) == (exit_code, cause, reason)
    assert end.job_id == str(job.supervisor)


@pytest.mark.real
def test_memory_that_another_program_lacked_is_not_the_cause(folder: Path) -> None:
    job = Job(folder, "until [ -e gate ]; do sleep 0.01; done; kill -9 $$")
    with control_groups.little_memory(32) as group:
        job.submit()
        wait_until(lambda: job.status.state == "running")
        control_groups.run_out_of_memory(group)
    (folder / "gate").touch()
    end = job.ended()
    assert (end.exit_code, end.cause, end.reason) == (137, "failed", "the job's script was killed by signal 9")


def test_a_job_that_ends_immediately_keeps_its_exit_code(tmp_path: Path) -> None:
    for number in range(10):
        job = Job(tmp_path / str(number), "exit 7")
        job.submit()
        assert job.ended().exit_code == 7


def test_the_reason_of_a_running_job_is_its_last_output(folder: Path) -> None:
    job = Job(folder, "echo one of two; printf '\\t\\rtwo\\fof\\x1etwo\\n'; until [ -e gate ]; do sleep 0.01; done")
    job.submit()
    wait_until(lambda: job.status.reason.strip() == "two of two")
    (folder / "gate").touch()
    assert job.ended().reason == ""


@pytest.mark.parametrize("end", ["", r"\n", r"\r", r"\n\n\n"])
def test_a_long_line_of_output_begins_with_a_whole_word(folder: Path, end: str) -> None:
    """The part of a word may be the part of a secret, which no mask recognizes."""
    words = " ".join(["a-secret"] * 500)
    job = Job(folder, f"printf '{words}{end}'; until [ -e gate ]; do sleep 0.01; done")
    job.submit()
    wait_until(lambda: "a-secret" in job.status.reason)
    assert set(job.status.reason.split()) == {"a-secret"}
    (folder / "gate").touch()
    assert job.ended().reason == ""


def test_the_reason_of_a_job_that_is_being_cancelled(folder: Path) -> None:
    text = "trap 'echo Terminated' TERM; echo ready; until [ -e gate ]; do sleep 0.01; done; exit 1"
    job = Job(folder, text)
    job.submit()
    wait_until(lambda: job.status.reason == "ready")
    detached.cancel_detached([job.handle], HOST)
    assert job.status.reason == "being cancelled"
    (folder / "gate").touch()
    assert job.ended().cause == "cancelled"


def test_submitting_twice_starts_once(folder: Path) -> None:
    job = Job(folder, "until [ -e gate ]; do sleep 0.01; done")
    job.submit()
    job.submit()
    wait_until(lambda: job.status.state == "running")
    job.submit()
    (folder / "gate").touch()
    assert job.ended().cause == "completed"
    job.submit()
    assert job.ended().cause == "completed"
    assert job.starts == 1


def test_concurrent_submissions_start_one_job(folder: Path) -> None:
    job = Job(folder, "until [ -e gate ]; do sleep 0.01; done")
    HOST.put({f"{folder}/{name}": "" for name in ("job.sh",)})
    job.submit()
    commands = (
        detached._bash("detached_processes.sh", "detached_submit_poll_cancel.sh") + f"\nsubmit {str(folder)!r} 0 30 ''"
    )
    several = [subprocess.Popen(["bash", "-s"], stdin=subprocess.PIPE, text=True, env={**os.environ}) for _ in range(5)]
    for each in several:
        each.communicate("{\n" + commands + "\n}")
    (folder / "gate").touch()
    job.ended()
    assert job.starts == 1


def test_a_job_with_a_check_can_be_started_again_after_its_end(folder: Path) -> None:
    job = Job(folder, "exit 1", check="false")
    job.submit()
    job.ended()
    job.submit()
    assert job.ended().exit_code == 1
    assert wait_until(lambda: job.starts == 2)


def test_cancel_ends_all_processes_of_this_job_only(tmp_path: Path) -> None:
    jobs = [Job(tmp_path / name, "sleep 1000 & setsid sleep 1000 & wait") for name in ("one", "two")]
    for job in jobs:
        job.submit()
        wait_until(lambda job=job: job.status.state == "running")
    detached.cancel_detached([jobs[0].handle], HOST)
    assert jobs[0].ended().cause == "cancelled"
    wait_until(lambda: living(jobs[0].folder) == 0)
    assert jobs[1].status.state == "running"
    detached.cancel_detached([jobs[1].handle], HOST)
    assert jobs[1].ended().cause == "cancelled"
    detached.cancel_detached([jobs[1].handle], HOST)  # it has ended already


def test_ranks_with_another_run_directory_end_with_the_job(folder: Path) -> None:
    job = Job(folder, "LLMB_RUN_DIR=/elsewhere setsid sleep 1000 & wait")
    job.submit()
    wait_until(lambda: living(folder, "LLMB_DETACHED") > living(folder))
    detached.cancel_detached([job.handle], HOST)
    assert job.ended().cause == "cancelled"
    wait_until(lambda: living(folder, "LLMB_DETACHED") == 0)


def living(folder: Path, mark: str = "LLMB_RUN_DIR") -> int:
    """Count the live processes of a job. The supervisor lives for a moment after it has recorded the end."""
    count = 0
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            count += f"{mark}={folder}".encode() in file.read_bytes().split(b"\0")
        except OSError:
            continue
    return count


def test_a_job_cancelled_before_its_submission_never_starts(folder: Path) -> None:
    job = Job(folder, "")
    detached.cancel_detached([job.handle], HOST)
    assert job.status.state == "absent"
    job.submit()
    assert job.ended().cause == "cancelled"
    assert job.starts == 0


def test_a_job_whose_supervisor_is_killed_is_lost_and_ended(folder: Path) -> None:
    job = Job(folder, "sleep 1000 & setsid sleep 1000 & wait", time_limit_s=1000)
    job.submit()
    wait_until(lambda: job.status.state == "running")
    os.kill(job.supervisor, signal.SIGKILL)
    end = job.ended()
    assert end.cause == "lost"
    wait_until(lambda: living(folder) == 0)
    assert job.status == end


IDS_THAT_BEGIN_AGAIN = """
echo 5000 >/proc/sys/kernel/ns_last_pid
LLMB_RUN_DIR=$1 bash -c 'echo 300 >/proc/sys/kernel/ns_last_pid
  sleep 1000 &
  : >"$LLMB_RUN_DIR/begun"
  wait
  : >"$LLMB_RUN_DIR/seen"' 2>/dev/null &
until [ -e "$1/begun" ]; do :; done # a process started here could take the id 301
[ "$(</proc/5001/task/5001/children)" = '301 ' ] || exit 1
kill() { # and wait until the parent of a killed process has noticed that, or is killed itself
  builtin kill "$@" || return
  until [ -e "$LLMB_RUN_DIR/seen" ] || ! builtin kill -0 5001 2>/dev/null; do sleep 0.02; done
}
LLMB_RUN_DIR=$1
end_leftovers "$1"
! grep -lzxF "LLMB_RUN_DIR=$1" /proc/[0-9]*/environ
"""


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can choose process ids")
def test_no_process_of_a_lost_job_sees_the_end_of_its_child_even_if_ids_begin_again(folder: Path) -> None:
    folder.mkdir()
    words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c"]
    if subprocess.run([*words, "echo 9 >/proc/sys/kernel/ns_last_pid"], capture_output=True).returncode:
        pytest.skip("the kernel has no process ids that a test can choose")
    script = detached._bash("detached_processes.sh") + IDS_THAT_BEGIN_AGAIN
    done = subprocess.run([*words, script, "bash", folder], capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert not (folder / "seen").exists()


def test_a_reused_process_id_is_not_trusted(folder: Path) -> None:
    folder.mkdir()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (folder / "started").write_text(f"{os.getpid()} 1 {boot}\n")
    assert Job(folder, "").status.cause == "lost"


@pytest.mark.parametrize(("before", "cause"), [([], "lost"), (["cancelled"], "cancelled")])
def test_a_process_id_of_another_boot_is_not_trusted(folder: Path, before: list[str], cause: str) -> None:
    folder.mkdir()
    for name in before:
        (folder / name).touch()
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    (folder / "started").write_text(f"{os.getpid()} {start} another-boot\n")
    assert Job(folder, "").status.cause == cause


@pytest.mark.parametrize("boot", ["this", "another"])
def test_cancel_does_not_end_a_process_that_reuses_the_id(folder: Path, boot: str) -> None:
    folder.mkdir()
    if boot == "this":
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with subprocess.Popen(["sleep", "1000"]) as bystander:
        (folder / "started").write_text(f"{bystander.pid} 1 {boot}\n")
        for _ in range(2):
            detached.cancel_detached([Job(folder, "").handle], HOST)
        assert bystander.poll() is None
        bystander.kill()


def test_the_time_limit_counts_from_the_start_of_the_turn(folder: Path) -> None:
    job = Job(folder, "sleep 1000", time_limit_s=1)
    job.submit()
    assert job.ended().cause == "timeout"


STUBBORN = """
trap '' TERM
: >ready
sleep 1000 &
until [ -e gate ]; do sleep 0.1; done
"""


@pytest.mark.parametrize(("limit_s", "cause"), [(1, "timeout"), (None, "cancelled")])
def test_a_job_that_ignores_sigterm_is_killed_after_its_grace(folder: Path, limit_s: int | None, cause: str) -> None:
    job = Job(folder, STUBBORN, time_limit_s=limit_s, grace_s=0)
    job.submit()
    if cause == "cancelled":
        wait_until((folder / "ready").exists)
        detached.cancel_detached([job.handle], HOST)
    assert job.ended().cause == cause
    wait_until(lambda: living(folder) == 0)


def test_a_stopped_job_can_continue(folder: Path) -> None:
    job = Job(folder, "echo $$ >ready; until [ -e gate ]; do sleep 0.01; done")
    job.submit()
    group = int(wait_until(lambda: (folder / "ready").exists() and (folder / "ready").read_text()))
    os.killpg(group, signal.SIGSTOP)
    wait_until(lambda: "T (stopped)" in Path(f"/proc/{group}/status").read_text())
    os.killpg(group, signal.SIGCONT)
    (folder / "gate").touch()
    assert job.ended().cause == "completed"


def test_a_second_cancel_grants_no_grace(folder: Path) -> None:
    job = Job(folder, STUBBORN, grace_s=1000)
    job.submit()
    wait_until((folder / "ready").exists)
    detached.cancel_detached([job.handle], HOST)
    assert job.status.state == "running"
    detached.cancel_detached([job.handle], HOST)
    assert job.ended().cause == "cancelled"
    wait_until(lambda: living(folder) == 0)


def test_a_job_can_clean_up_during_its_grace(folder: Path) -> None:
    in_order = "until [ -e gate ]; do sleep 0.1; done; : >saved; exit"
    job = Job(folder, f"trap '{in_order}' TERM; : >ready; sleep 1000 & wait")
    job.submit()
    wait_until((folder / "ready").exists)
    detached.cancel_detached([job.handle], HOST)
    (folder / "gate").touch()
    assert (job.ended().cause, (folder / "saved").exists()) == ("cancelled", True)


def test_a_job_that_ends_during_cancel_is_no_error(folder: Path) -> None:
    gone = "supervisor_pid() { [ ! -e asked ] && : >asked && echo 4194305; }"  # beyond the largest process id
    calls = f"cd {str(folder)!r}\n{gone}\ncancel ."
    folder.mkdir()
    detached._run(HOST, calls)
    assert (folder / "cancelled").exists()


def test_no_secret_outlives_the_job(folder: Path) -> None:
    job = Job(folder, "exit 1")
    secret = {f"{folder}/.secrets": "export TOKEN=x\n"}
    HOST.put(secret, mode=0o600)
    assert (folder / ".secrets").stat().st_mode & 0o777 == 0o600
    job.submit()
    job.ended()
    assert not (folder / ".secrets").exists()
    HOST.put(secret, mode=0o600)
    job.submit()  # after its end
    assert not (folder / ".secrets").exists()


def test_many_jobs_are_polled_with_one_command(tmp_path: Path) -> None:
    jobs = [Job(tmp_path / str(number), f"exit {number}") for number in range(5)]
    scripts = [
        Script(id=str(number), directory=job.script.directory, text=job.script.text) for number, job in enumerate(jobs)
    ]
    handles = detached.submit_detached(scripts, HOST)
    scripts_run: list[str] = []

    class Counting(LocalHost):
        def run(self, script: str, *, timeout_s: float = 60.0) -> Any:
            scripts_run.append(script)
            return super().run(script, timeout_s=timeout_s)

    def all_ended() -> Any:
        scripts_run.clear()
        seen = detached.poll_detached(handles.values(), Counting())
        return seen if all(each.state == "ended" for each in seen.values()) else None

    seen = wait_until(all_ended)
    assert {identity: status.exit_code for identity, status in seen.items()} == {str(n): n for n in range(5)}
    assert len(scripts_run) == 1


def test_a_directory_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TargetError, match=r"cannot write .*/file/job.*: (Not a directory|File exists)"):
        Job(tmp_path / "file" / "job", "").submit()


@pytest.mark.parametrize(("started", "error"), [("", TargetError), ("a", UnknownOutcomeError)])
def test_a_failed_start_is_an_unknown_outcome_only_after_another_start(
    tmp_path: Path, started: str, error: type[TargetError]
) -> None:
    scripts = [Script(id=each, directory=f"{tmp_path}/{each}", text=":") for each in f"{started}b"]
    (tmp_path / "b/submit").mkdir(parents=True)  # a directory instead of its lock
    with pytest.raises(TargetError) as raised:
        detached.submit_detached(scripts, HOST)
    assert type(raised.value) is error


def test_a_start_that_is_killed_is_an_unknown_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job before was started."""
    chmod = tmp_path / "bin/chmod"
    chmod.parent.mkdir()
    chmod.write_text('#!/bin/bash\n[[ $PWD != */b ]] || kill -KILL "$(ps -o ppid= $PPID)"\n')
    chmod.chmod(0o755)
    monkeypatch.setenv("PATH", f"{chmod.parent}:{os.environ['PATH']}")
    jobs = [Job(tmp_path / name, "") for name in "ab"]
    with pytest.raises(UnknownOutcomeError, match="exit code -9"):
        detached.submit_detached([job.script for job in jobs], HOST)
    assert jobs[0].ended().cause == "completed"
