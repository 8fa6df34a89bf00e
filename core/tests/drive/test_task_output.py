"""The last output of tasks that run as jobs of the scheduler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from llmb.drive.task_jobs import with_last_outputs
from llmb.values.errors import UnreachableError
from llmb.values.host import CommandResult
from llmb.values.job import Job, Phase, Task
from llmb.values.job_status import JobStatus

RUNNING = JobStatus(state="running", attempt=1)


def task(on: str = "scheduler") -> Any:
    phase = Phase(name="work", command=("true",))
    job = Job(
        id="a", directory="/a", phases=(phase,), nodes=1, tasks_per_node=1, gpus_per_node=0, env={}, time_limit_s=60
    )
    logs = {"slurm": ("/a/slurm.log",), "work": ("/a/work.{attempt}.log",)}
    return SimpleNamespace(
        key="a", on=on, task=Task(key="a", kind="data", work=job, check="true"), script=SimpleNamespace(logs=logs)
    )


def host(answer: str | Exception, commands: list[str]) -> Any:
    def run(script: str) -> CommandResult:
        commands.append(script.splitlines()[-1])
        if isinstance(answer, Exception):
            raise answer
        return CommandResult(exit_code=0, stdout=answer)

    return SimpleNamespace(run=run)


def test_the_output_of_the_current_attempt_is_shown_without_the_label_of_its_rank() -> None:
    commands: list[str] = []
    found = with_last_outputs([task()], {"a": RUNNING}, host("a\t0: file 2 of 10\n", commands))
    assert found["a"].reason == "file 2 of 10"
    assert commands == ["last_output_of a /a/work.1.log"]


@pytest.mark.parametrize(
    ("on", "status"), [("host", RUNNING), ("scheduler", JobStatus(state="pending", reason="Priority"))]
)
def test_other_tasks_keep_their_reason(on: str, status: JobStatus) -> None:
    commands: list[str] = []
    assert with_last_outputs([task(on)], {"a": status}, host("a\tx\n", commands)) == {"a": status}
    assert commands == []


def test_a_host_that_does_not_respond_hides_only_the_output() -> None:
    assert with_last_outputs([task()], {"a": RUNNING}, host(UnreachableError("gone"), [])) == {"a": RUNNING}
