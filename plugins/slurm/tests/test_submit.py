"""What sbatch refuses, and how submissions are told apart that it did not answer."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from llmb import Script, TargetError, UnknownOutcomeError
from llmb.hosts.local import LocalHost
from llmb_slurm.plugin import Slurm
from llmb_slurm.refusals import remedy


@pytest.mark.parametrize(
    ("told", "setting"),
    [
        ("sbatch: error: GPUs not found", "target.gpu_request"),
        ("sbatch: error: Cannot submit to this partition without GPU resources", "target.gpu_request"),
        ("sbatch: error: Cannot submit to this partition without GPU resources", "target.partition"),
        ("sbatch: error: Invalid generic resource (gres) specification", "target.gpu_request"),
        ("sbatch: error: invalid partition specified: x", "target.partition"),
        ("Batch job submission failed: Invalid account or account/partition combination specified", "target.account"),
        ("Batch job submission failed: Invalid qos specification", "target.qos"),
        ("Batch job submission failed: Requested reservation is invalid", "target.reservation"),
        ("Batch job submission failed: Invalid feature specification", "target.constraint"),
        ("sbatch: unrecognized option '--segment=4'", "target.sbatch"),
        ("something that nobody has seen yet", ""),
    ],
)
def test_a_refusal_names_the_setting_to_change(told: str, setting: str) -> None:
    assert setting in remedy(told)
    assert bool(remedy(told)) == bool(setting)


class Sbatch:
    """A stand-in that answers as it is told, and one for an empty queue."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
        self.program("squeue", "exit 0")

    def program(self, name: str, bash: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(f"#!/bin/bash\necho {name} >>{self.folder}/calls\n{bash}\n")
        file.chmod(0o755)

    def submit(self, check: str = "", ids: str = "a") -> Any:
        scripts = [
            Script(id=each, directory=f"{self.folder}/runs/{each}", text="#!/bin/bash\n", check=check) for each in ids
        ]
        return Slurm().submit(scripts, LocalHost())["a"]

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().split()


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sbatch:
    return Sbatch(tmp_path, monkeypatch)


def test_the_name_of_a_cluster_is_no_part_of_a_jobs_id(sbatch: Any) -> None:
    sbatch.program("sbatch", "echo '17;eos'")
    assert sbatch.submit().job_id == "17"
    assert sbatch.submit().job_id == "17"
    assert sbatch.calls == ["sbatch"]


def test_what_is_refused_may_be_submitted_once_it_is_mended(sbatch: Any) -> None:
    sbatch.program("sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    refused = sbatch.submit()
    assert (refused.job_id, refused.refused) == (None, "sbatch refused it: invalid partition specified: x")
    sbatch.program("sbatch", "echo 18")
    assert sbatch.submit().job_id == "18"
    assert sbatch.calls == ["sbatch", "sbatch"]


def test_a_refusal_of_several_lines_is_one(sbatch: Any) -> None:
    sbatch.program("sbatch", r"printf 'sbatch: error: policy:\r\nno jobs\v\ttoday\r\n' >&2; exit 1")
    assert " ".join(sbatch.submit().refused.split()) == "sbatch refused it: policy: no jobs today"


def test_a_task_that_is_submitted_anew_is_given_as_long_to_be_seen_as_the_first_time(sbatch: Any) -> None:
    for number in (17, 18):
        sbatch.program("sbatch", f"echo {number}")
        assert sbatch.submit(check="false").job_id == str(number)
        assert not (sbatch.folder / "runs/a/missing").exists()
        (sbatch.folder / "runs/a/missing").touch()


@pytest.mark.parametrize(
    ("squeue", "job"),
    [
        ("echo RUNNING", "17"),
        ("echo A_STATE_OF_TOMORROW", "17"),
        ("echo REVOKED", "18"),
        ("echo NODE_FAIL", "18"),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", "18"),
        ("echo 'slurm_load_jobs error: Socket timed out on send/recv operation' >&2; exit 1", "Socket timed out"),
        ("kill $$", "squeue does not tell of job 17"),
    ],
)
def test_a_task_is_submitted_anew_only_where_the_queue_says_that_its_job_has_ended(
    sbatch: Any, squeue: str, job: str
) -> None:
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
    assert sbatch.submit(check="true").job_id == ("18" if job == "18" else "17")  # what is done needs no answer


@pytest.mark.parametrize(
    "told",
    [
        "Unable to contact slurm controller (connect failure)",
        "sbatch: fatal: Could not establish a configuration source",
    ],
)
def test_where_the_controller_cannot_be_asked_nothing_was_submitted(sbatch: Any, told: str) -> None:
    sbatch.program("sbatch", f"echo '{told}' >&2; exit 1")
    with pytest.raises(TargetError, match=re.escape(told)) as refused:
        sbatch.submit()
    assert not isinstance(refused.value, UnknownOutcomeError)


@pytest.mark.parametrize("at_once", [1, 200])
def test_where_some_were_submitted_nobody_is_told_that_nothing_was(
    sbatch: Any, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("llmb_slurm.submit.AT_ONCE", at_once)
    sbatch.program(
        "sbatch", "case $PWD in */a) echo 20 ;; *) echo Unable to contact slurm controller >&2; exit 1 ;; esac"
    )
    with pytest.raises(UnknownOutcomeError, match="Unable to contact"):
        sbatch.submit(ids="ab")


def test_without_an_answer_the_queue_is_asked_before_it_is_submitted_again(sbatch: Any) -> None:
    sbatch.program("sbatch", "echo 'Socket timed out on send/recv operation' >&2; exit 1")
    with pytest.raises(UnknownOutcomeError, match="Socket timed out"):
        sbatch.submit()
    sbatch.program("squeue", "echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1")
    sbatch.program("sbatch", "echo 19")
    with pytest.raises(UnknownOutcomeError, match="Unable to contact"):  # cannot ask: not absent
        sbatch.submit()
    sbatch.program("squeue", "exit 0")
    assert sbatch.submit().job_id == "19"
    assert sbatch.calls == ["sbatch", "squeue", "squeue", "sbatch"]
