"""Work directories in which nothing can be written after a job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from llmb import CommandResult, JobStatus
from llmb.drive.finalize.job_directories import UNWRITABLE, SuspectJob, explain_with_directories


@pytest.mark.parametrize(
    ("error", "remedy"), [("Read-only file system", "`findmnt -T '/lustre/my llmb'`"), ("No space left on device", "")]
)
def test_a_read_only_work_directory_is_the_reason_and_its_remedy_names_the_mount(error: str, remedy: str) -> None:
    answer = CommandResult(exit_code=UNWRITABLE, stdout="", stderr=f"mktemp: failed to create file: {error}\n")
    group = SimpleNamespace(workdir="/lustre/my llmb", host=SimpleNamespace(run=lambda _script: answer))
    job = SuspectJob("/lustre/my llmb/runs/a", (), JobStatus(state="ended", cause="completed"))
    status = explain_with_directories({"a": job}, cast("Any", group))["a"]
    assert status.reason == f"nothing can be written in /lustre/my llmb: mktemp: failed to create file: {error}"
    assert remedy in status.remedy
    assert bool(status.remedy) == bool(remedy)  # llmb knows the remedy for a full disk from its text
