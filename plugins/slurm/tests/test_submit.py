"""Submission: jobs that sbatch rejects, and answers of sbatch that leave the outcome unknown."""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from llmb import BusyError, JobHandle, Script, TargetError, UnknownOutcomeError
from llmb.hosts.local_host import LocalHost
from llmb_slurm.plugin import Slurm
from llmb_slurm.rejected_and_stuck_jobs import find_remedy
from llmb_slurm.sbatch_directives import job_mark


@pytest.mark.parametrize(
    ("message", "setting"),
    [
        ("sbatch: error: GPUs not found", "target.gpu_request"),
        ("sbatch: error: Cannot submit to this partition without GPU resources", "target.gpu_request"),
        ("sbatch: error: Cannot submit to this partition without GPU resources", "target.partition"),
        ("sbatch: error: Invalid generic resource (gres) specification", "target.gpu_request"),
        ("sbatch: error: invalid partition specified: x", "target.partition"),
        ("Batch job submission failed: Invalid account or account/partition combination specified", "target.account"),
        ("Batch job submission failed: Invalid qos specification", "target.qos"),
        ("Batch job submission failed: Job violates accounting/QOS policy (job submit limit)", "target.max_jobs"),
        ("sbatch: error: QOSMinGRES; submission failed: Job violates accounting/QOS policy", "run on more GPUs"),
        ("Batch job submission failed: Resource temporarily unavailable", "target.max_jobs"),
        ("Batch job submission failed: Requested reservation is invalid", "target.reservation"),
        ("Batch job submission failed: Invalid license specification", "licenses in [target.sbatch]"),
        ("Batch job submission failed: Invalid feature specification", "target.constraint"),
        ("allocation failure: Requested node configuration is not available", "target.gpu_request"),
        ("allocation failure: Requested node configuration is not available", "nodelist and exclude, or"),
        ("sbatch: unrecognized option '--no-such=4'", "target.sbatch"),
        ("sbatch: unrecognized option '--segment=4'", "target.segment=false"),
        ("an unknown message", ""),
    ],
)
def test_a_rejection_names_the_setting_to_change(message: str, setting: str) -> None:
    assert setting in find_remedy(message)
    assert bool(find_remedy(message)) == bool(setting)


TOKEN = "very-secret-7d1f9c"


class Sbatch:
    """Stand-ins for Slurm's programs: sbatch as a test defines it, and squeue with an empty queue."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
        self.program("squeue", "exit 0")

    def program(self, name: str, bash: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(f"#!/bin/bash\necho {name} >>{self.folder}/calls\n{bash}\n")
        file.chmod(0o755)

    def submit(self, check: str = "", ids: Iterable[str] = "a") -> Any:
        scripts = [
            Script(id=each, directory=f"{self.folder}/runs/{each}", text="#!/bin/bash\n", check=check) for each in ids
        ]
        self.handles = Slurm().submit(scripts, LocalHost())
        return self.handles["a"]

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().split()


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sbatch:
    return Sbatch(tmp_path, monkeypatch)


def test_the_name_of_the_cluster_is_removed_from_the_job_id(sbatch: Any) -> None:
    sbatch.program("sbatch", "echo '17;eos'")
    assert sbatch.submit().job_id == "17"
    assert sbatch.submit().job_id == "17"
    assert sbatch.calls == ["sbatch"]


def test_messages_of_the_site_beside_the_job_id_are_skipped(sbatch: Any) -> None:
    """Wrappers of sbatch and plugins of its command line print on standard output too."""
    sbatch.program("sbatch", "printf '%s\\n' '-- Welcome to Eos: 2 jobs --' 17 'Verifying quota: ok'; echo note >&2")
    assert sbatch.submit().job_id == "17"
    assert sbatch.submit().job_id == "17"
    unknown = JobHandle(id="a", directory=sbatch.handles["a"].directory)
    sbatch.program("squeue", "echo '17|PENDING|0|0|0|a|p|Priority||/w|(null)|'")
    assert Slurm().poll([unknown], LocalHost())["a"].job_id == "17"
    assert sbatch.calls == ["sbatch", "squeue"]


def test_a_function_of_the_login_that_prints_does_not_disturb_the_answer(
    sbatch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASH_FUNC_cd%%", '() { builtin cd "$@" && echo "now in $PWD"; }')
    sbatch.program("sbatch", "echo 7")
    assert sbatch.submit().job_id == "7"


def test_a_job_whose_id_the_disk_has_no_room_for_is_found_in_the_queue(sbatch: Any) -> None:
    mark = job_mark("a", f"{sbatch.folder}/runs/a")
    sbatch.program("sbatch", "exit 0")
    with pytest.raises(UnknownOutcomeError, match="sbatch printed no job id, and squeue does not list the job"):
        sbatch.submit()
    sbatch.program("squeue", f"printf '%s\\n' '17|{mark}; text of the site|' '9|{mark}|' '18|another|'")
    assert sbatch.submit().job_id == "17"
    assert sbatch.calls.count("sbatch") == 1


def test_a_job_is_found_in_a_long_queue_if_no_temporary_file_can_be_written(sbatch: Any) -> None:
    """A bash that cannot write a here-document would have read an empty queue, and submitted the job again."""
    no_files = "trap '' XFSZ; ulimit -f 8"
    sbatch.program("bash", f'{no_files}; exec {shutil.which("bash")} "$@"')
    others = 'for id in {1..20000}; do echo "$id|another|"; done'
    sbatch.program("squeue", f"{others}; echo '30000|{job_mark('a', f'{sbatch.folder}/runs/a')}|'")
    (sbatch.folder / "runs/a").mkdir(parents=True)
    (sbatch.folder / "runs/a/job_id").touch()
    assert sbatch.submit().job_id == "30000"
    assert "sbatch" not in sbatch.calls


def test_a_job_gets_the_proxies_and_the_controller_of_the_host_and_no_other_setting_of_its_user(
    sbatch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ("https_proxy", "NO_PROXY", "SLURM_CONF", "SLURM_CONF_SERVER", "KRB5CCNAME")
    for name in (*kept, "HF_TOKEN", "UV_INDEX_URL", "SBATCH_QOS"):
        monkeypatch.setenv(name, "set")
    sbatch.program("sbatch", f"compgen -e >{sbatch.folder}/exported; echo 17")
    sbatch.submit()
    exported = (sbatch.folder / "exported").read_text().split()
    assert {"PATH", *kept} <= {*exported}
    assert [name for name in ("HF_TOKEN", "UV_INDEX_URL", "SBATCH_QOS") if name in exported] == []


def test_variables_of_the_user_do_not_hide_the_default_account(sbatch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SBATCH_ACCOUNT": "proj", "account": "mine", "partition": "mine"}.items():
        monkeypatch.setenv(name, value)
    sbatch.program("sbatch", f"env >{sbatch.folder}/exported; echo 17")
    sbatch.submit()
    exported = (sbatch.folder / "exported").read_text().split("\n")
    assert "SBATCH_ACCOUNT=proj" in exported
    assert [each for each in exported if "mine" in each] == []


@pytest.mark.parametrize("munge", [True, False])
def test_a_token_reaches_sbatch_only_if_the_login_needs_it_and_never_the_job(
    sbatch: Any, monkeypatch: pytest.MonkeyPatch, munge: bool
) -> None:
    for name in ("SLURM_JWT", "token"):
        monkeypatch.setenv(name, TOKEN)
    authenticate = "" if munge else '[ -n "${SLURM_JWT-}" ] || exit 1\n'
    sbatch.program("squeue", authenticate)
    sbatch.program(
        "sbatch",
        f"""
        echo "$@" >{sbatch.folder}/arguments
        compgen -e >{sbatch.folder}/exported
        case $1 in --export-file=*) cat "${{1#*=}}" ;; *) env -0 ;; esac >{sbatch.folder}/job
        echo 17""",
    )
    assert sbatch.submit().job_id == "17"
    assert ("SLURM_JWT" in (sbatch.folder / "exported").read_text().split()) == (not munge)
    job = (sbatch.folder / "job").read_text()
    assert f"HOME={os.environ['HOME']}\0" in job
    assert TOKEN not in job + (sbatch.folder / "arguments").read_text()
    (sbatch.folder / "runs/a/job_id").write_text("")  # a job without an id is searched in the queue
    mark = job_mark("a", f"{sbatch.folder}/runs/a")
    sbatch.program("squeue", f"{authenticate}echo '18|{mark}|'")
    assert sbatch.submit().job_id == "18"


def test_a_rejected_job_can_be_submitted_again(sbatch: Any) -> None:
    sbatch.program("sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    refused = sbatch.submit()
    assert (refused.job_id, refused.refused) == (None, "sbatch rejected the job: invalid partition specified: x")
    sbatch.program("sbatch", "echo 18")
    assert sbatch.submit().job_id == "18"
    assert sbatch.calls == ["sbatch", "sbatch"]


def test_words_of_the_site_do_not_turn_a_rejection_into_an_unknown_outcome(sbatch: Any) -> None:
    lines = (
        "sbatch: Connection to the grid: see the lounge",
        "sbatch: error: Batch job submission failed: Invalid qos",
    )
    sbatch.program("sbatch", f"printf '%s\\n' '{lines[0]}' '{lines[1]}' >&2; exit 1")
    assert sbatch.submit().refused.endswith("Invalid qos")


def test_a_rejection_of_several_lines_becomes_one_line(sbatch: Any) -> None:
    sbatch.program("sbatch", r"printf 'sbatch: error: policy:\r\nno jobs\v\ttoday\r\n' >&2; exit 1")
    assert " ".join(sbatch.submit().refused.split()) == "sbatch rejected the job: policy: no jobs today"
    sbatch.program("sbatch", r"printf 'sbatch: error: invalid x\nsbatch: error: no such x\n' >&2; exit 1")
    assert sbatch.submit().refused == "sbatch rejected the job: invalid x; no such x"
    more = 'Try "sbatch --help" for more information'
    sbatch.program("sbatch", f"printf '%s\\n' \"sbatch: unrecognized option '--x'\" '{more}' >&2; exit 1")
    assert sbatch.submit().refused == "sbatch rejected the job: unrecognized option '--x'"
    sbatch.program("sbatch", "exit 1")  # as a wrapper of the site may
    assert sbatch.submit().refused == "sbatch rejected the job: it printed no reason"


def test_a_host_without_sbatch_is_no_rejection(sbatch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No job was submitted, and no option has to be corrected."""
    programs = {file.name: file for folder in ("/bin", "/usr/bin") for file in Path(folder).iterdir()}
    for name in programs.keys() - {"sbatch", "squeue"}:
        (sbatch.folder / "bin" / name).symlink_to(programs[name])
    monkeypatch.setenv("PATH", f"{sbatch.folder}/bin")
    with pytest.raises(TargetError, match="sbatch is not in the PATH of a login on this host"):
        sbatch.submit()


def test_answers_of_processes_that_end_at_the_same_time_do_not_mix(sbatch: Any) -> None:
    """Together they are more than a pipe takes in one piece."""
    message, last = "x" * 4000, {"w", "x", "y", "z"}
    sbatch.program(
        "sbatch",
        f"""case $PWD in */[wxyz])
          touch {sbatch.folder}/last-${{PWD##*/}}
          until set -- {sbatch.folder}/last-*; [ $# = 4 ]; do sleep 0.01; done
        esac
        echo {message} >&2; exit 1""",
    )
    ids = ["a", *(f"a{number}" for number in range(115)), *sorted(last)]
    sbatch.submit(ids=ids)
    assert {each.id for each in sbatch.handles.values() if message in each.refused} == {*ids}


def test_resubmitting_a_task_resets_the_time_it_has_been_missing(sbatch: Any) -> None:
    for number in (17, 18):
        sbatch.program("sbatch", f"echo {number}")
        assert sbatch.submit(check="false").job_id == str(number)
        assert not (sbatch.folder / "runs/a/missing").exists()
        (sbatch.folder / "runs/a/missing").touch()


@pytest.mark.parametrize(
    ("squeue", "job"),
    [
        ("echo 'RUNNING|a|/w/b|(null)|'", "17"),
        ("echo 'A_STATE_OF_TOMORROW|a|/w/b|(null)|'", "17"),
        ("echo 'REVOKED|a|/w/b|(null)|'", "18"),
        ("echo 'NODE_FAIL|a|/w/b|(null)|'", "18"),
        ("echo 'RUNNING|b|/w/b|(null)|'", "18"),  # another job has the id since the controller lost its state
        ("echo 'RUNNING|a|/w/b|llmb a 0123456789ab|'", "17"),  # submitted with another path of the same directory
        ("echo 'RUNNING|renamed|/w/b|llmb a 0123456789ab; text of the site|'", "17"),
        ("echo 'RUNNING|renamed|/another/path/to/runs/a|text of the site|'", "17"),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", "18"),
        ("echo 'slurm_load_jobs error: Socket timed out on send/recv operation' >&2; exit 1", "Socket timed out"),
        ("kill $$", "squeue does not report the state of job 17"),
    ],
)
def test_a_task_is_resubmitted_only_if_the_queue_reports_the_end_of_its_job(sbatch: Any, squeue: str, job: str) -> None:
    sbatch.program("sbatch", "echo 17")
    sbatch.submit(check="false")
    (sbatch.folder / "runs/a/claim").symlink_to("17")
    sbatch.program("squeue", squeue)
    sbatch.program("sbatch", "echo 18")
    if job.isdigit():
        assert sbatch.submit(check="false").job_id == job
    else:
        with pytest.raises(UnknownOutcomeError, match=job):
            sbatch.submit(check="false")
    assert (sbatch.folder / "runs/a/claim").is_symlink() == (job != "18")
    assert sbatch.submit(check="true").job_id == ("18" if job == "18" else "17")  # a complete task needs no query


@pytest.mark.parametrize(
    "message",
    [
        "Unable to contact slurm controller (connect failure)",
        "sbatch: fatal: Could not establish a configuration source",
        "sbatch: error: Batch job submission failed: Protocol authentication error",
    ],
)
def test_nothing_is_submitted_if_the_controller_is_unreachable(sbatch: Any, message: str) -> None:
    sbatch.program("sbatch", f"echo '{message}' >&2; exit 1")
    with pytest.raises(TargetError, match=re.escape(message)) as raised:
        sbatch.submit()
    assert not isinstance(raised.value, UnknownOutcomeError)


@pytest.mark.parametrize("exists", [True, False])
def test_a_lock_that_is_a_link_is_not_followed(sbatch: Any, exists: bool) -> None:
    victim = sbatch.folder / "victim"
    if exists:
        victim.write_text("precious")
    (sbatch.folder / "runs").mkdir()
    (sbatch.folder / "runs/.submit").symlink_to(victim)
    with pytest.raises(
        TargetError, match=rf"runs/\.submit on {platform.node()} is a symbolic link, not a regular file; run `rm "
    ):
        sbatch.submit()
    assert victim.read_text() == "precious" if exists else not victim.exists()


def test_a_lock_that_is_a_pipe_does_not_block_the_submission(sbatch: Any) -> None:
    lock = sbatch.folder / "runs/.submit"
    lock.parent.mkdir()
    os.mkfifo(lock)
    message = f"the lock {lock} on {platform.node()} is a fifo, not a regular file; run `rm {lock}` there"
    with pytest.raises(TargetError, match=re.escape(message)):
        sbatch.submit()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create files of another user")
def test_nothing_is_submitted_in_the_directory_of_another_user(sbatch: Any) -> None:
    """The other user could have made job_id a link to a file of this user, which sbatch would overwrite."""
    victim, directory = sbatch.folder / "victim", sbatch.folder / "runs/a"
    victim.write_text("precious")
    directory.mkdir(parents=True)
    (directory / "job_id").symlink_to(victim)
    os.chown(directory, 65534, 65534)
    sbatch.program("sbatch", "echo 17")
    with pytest.raises(TargetError, match=f"{directory} on {platform.node()} belongs to another user; remove it"):
        sbatch.submit()
    assert victim.read_text() == "precious"


def test_the_group_cannot_write_in_the_directory_of_a_job(sbatch: Any) -> None:
    sbatch.program("sbatch", "echo 17")
    before = os.umask(0o002)
    try:
        sbatch.submit()
    finally:
        os.umask(before)
    assert (sbatch.folder / "runs").stat().st_mode & 0o777 == 0o775
    assert (sbatch.folder / "runs/a").stat().st_mode & 0o777 == 0o755


def test_a_lock_of_another_process_is_an_error_of_its_own(sbatch: Any) -> None:
    flock = shutil.which("flock")
    sbatch.program("flock", f'shift 2; exec {flock} -w 0 "$@"')  # waits for 0 s instead of 120 s
    sbatch.program("sbatch", "echo 17")
    folder = sbatch.folder / "runs"
    folder.mkdir()
    with (folder / ".submit").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BusyError, match=f"another llmb has been submitting in {folder} for 2 minutes"):
            sbatch.submit()
    assert sbatch.submit().job_id == "17"


def test_a_job_that_is_about_to_be_submitted_is_cancelled_after_that(sbatch: Any) -> None:
    """After Ctrl-C or a lost connection, submit.sh continues, and another llmb may cancel its jobs."""
    queue, started = sbatch.folder / "queue", sbatch.folder / "started"
    row = "17|PENDING|0|0|0|a|p|Priority||/w|(null)|"
    sbatch.program("sbatch", f"touch {started}; sleep 1; echo '{row}' >{queue}; echo 17")
    sbatch.program("squeue", f"cat {queue} 2>/dev/null; exit 0")
    sbatch.program("scancel", f'echo "$@" >{sbatch.folder}/cancelled')
    with ThreadPoolExecutor() as threads:
        submission = threads.submit(sbatch.submit)
        while not started.exists():
            time.sleep(0.01)
        Slurm().cancel([JobHandle(id="a", directory=f"{sbatch.folder}/runs/a")], LocalHost())
    assert submission.result().job_id == "17"
    assert (sbatch.folder / "cancelled").read_text() == "17\n"


def test_a_job_is_not_said_to_be_cancelled_while_another_process_may_submit_it(sbatch: Any) -> None:
    flock, folder = shutil.which("flock"), sbatch.folder / "runs"
    sbatch.program("flock", f'shift 3; exec {flock} -s -w 0 "$@"')  # waits for 0 s instead of 120 s
    handle = JobHandle(id="a", directory=f"{folder}/a")
    folder.mkdir()
    with (folder / ".submit").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BusyError, match=f"cannot cancel jobs: another llmb has been submitting in {folder}"):
            Slurm().cancel([handle], LocalHost())
    Slurm().cancel([handle], LocalHost())


@pytest.mark.parametrize("batch_size", [1, 200])
def test_a_failure_after_some_submissions_is_an_unknown_outcome(
    sbatch: Any, monkeypatch: pytest.MonkeyPatch, batch_size: int
) -> None:
    monkeypatch.setattr("llmb_slurm.submit.BATCH_SIZE", batch_size)
    sbatch.program(
        "sbatch", "case $PWD in */a) echo 20 ;; *) echo Unable to contact slurm controller >&2; exit 1 ;; esac"
    )
    with pytest.raises(UnknownOutcomeError, match="Unable to contact"):
        sbatch.submit(ids="ab")


@pytest.mark.parametrize(
    ("sbatch_end", "reason"),
    [
        ("kill -KILL $$", "sbatch was killed by signal 9"),
        ("kill -KILL $PPID", "Killed"),  # the process of submit.sh that calls sbatch, as by a login node without memory
    ],
)
def test_a_job_whose_submission_was_killed_is_not_rejected(sbatch: Any, sbatch_end: str, reason: str) -> None:
    """The controller may have accepted the job before."""
    sbatch.program("sbatch", sbatch_end)
    with pytest.raises(UnknownOutcomeError, match=reason):
        sbatch.submit()
    sbatch.program("squeue", f"echo '17|{job_mark('a', f'{sbatch.folder}/runs/a')}|'")
    assert sbatch.submit().job_id == "17"
    assert sbatch.calls.count("sbatch") == 1


def test_the_queue_is_queried_before_a_job_with_an_unknown_outcome_is_submitted_again(sbatch: Any) -> None:
    sbatch.program("sbatch", "echo 'Socket timed out on send/recv operation' >&2; exit 1")
    with pytest.raises(UnknownOutcomeError, match="Socket timed out"):
        sbatch.submit()
    sbatch.program("squeue", "echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1")
    sbatch.program("sbatch", "echo 19")
    with pytest.raises(UnknownOutcomeError, match="Unable to contact"):  # unreachable does not mean absent
        sbatch.submit()
    sbatch.program("squeue", "exit 0")
    assert sbatch.submit().job_id == "19"
    assert sbatch.calls == ["sbatch", "squeue", "squeue", "sbatch"]


def test_a_full_queue_rejects_the_other_jobs_without_a_call_of_sbatch(sbatch: Any) -> None:
    """If the queue is full, sbatch tries for two minutes before it fails."""
    message = "sbatch: error: Batch job submission failed: Resource temporarily unavailable"
    sbatch.program("sbatch", f"echo '{message}' >&2; exit 1")
    sbatch.submit(ids="abcdefghijklmnopqrst")
    assert sbatch.calls == ["sbatch"] * 4  # one of each process
    refused = "sbatch rejected the job: Batch job submission failed: Resource temporarily unavailable"
    assert {handle.refused for handle in sbatch.handles.values()} == {refused}
    assert "target.max_jobs" in sbatch.handles["t"].remedy
