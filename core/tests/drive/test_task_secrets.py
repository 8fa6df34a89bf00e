"""Files with secrets of shared tasks: none stays that no process needs, and none is taken from another process."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llmb.drive.secrets import SHOWN_CHARACTERS, SecretFiles, mask_reasons
from llmb.drive.shared_tasks.task_failure import TAIL_BYTES, find_task_failure
from llmb.hosts.local_host import LocalHost
from llmb.plan_shared_tasks import TaskPlan
from llmb.state_machine.events import Note
from llmb.values.errors import TargetError
from llmb.values.frozen import FrozenMap
from llmb.values.host import CommandResult
from llmb.values.job import Script, Task
from llmb.values.job_status import JobStatus

from .fake_cluster import FakeHost, JobPlan
from .fake_process import Disk, Process
from .world import Scenario, World

FOLDER = "/work/cache/jobs/image"
TASK = Scenario(
    plans=lambda: {"image": JobPlan(), "a": JobPlan()},
    needs={"a": ("image",)},
    ends={"a": "completed"},
    secret=("image",),
)


@pytest.mark.parametrize(("waiting", "left"), [([], []), (["another"], [f"{FOLDER}/.secrets"])])
def test_secrets_of_a_failed_submission_stay_only_for_runs_of_other_processes(
    waiting: list[str], left: list[str], disk: Disk
) -> None:
    with World(TASK, disk) as world:
        world.drive(Process())
        submission = world.cluster.commands.index("submit") + 1
    with World(TASK, disk) as world:
        world.cluster.files |= {f"{FOLDER}/waiting/{run_id}": b"" for run_id in waiting}
        with pytest.raises(TargetError):
            world.drive(Process(), {submission: "refused"})
        assert world.cluster.secrets == left


def test_a_complete_task_keeps_no_secrets_of_a_process_that_was_killed(disk: Disk) -> None:
    with World(TASK, disk) as world:
        world.cluster.files |= {"/work/cache/image": b"complete", f"{FOLDER}/.secrets": b"export TOKEN=1"}
        world.drive(Process())
        assert world.cluster.jobs_of("image") == []
        assert world.cluster.secrets == []


def test_a_secret_that_cannot_be_removed_is_reported_once(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    run = FakeHost.run

    def fail_to_remove(self: FakeHost, script: str, *, timeout_s: float = 60.0) -> CommandResult:
        result = run(self, script, timeout_s=timeout_s)
        failed = CommandResult(
            exit_code=1, stdout="", stderr=f"rm: cannot remove '{FOLDER}/.secrets': Read-only file system\n"
        )
        return failed if script.startswith("rm -f ") else result

    monkeypatch.setattr(FakeHost, "run", fail_to_remove)
    with World(TASK, disk) as world:
        world.drive(Process())
        [note] = [event.text for event in world.events if isinstance(event, Note)]
        assert f"rm: cannot remove '{FOLDER}/.secrets': Read-only file system; remove them" in note


def test_nothing_is_run_for_scripts_without_secrets() -> None:
    host: Any = SimpleNamespace()  # without any method
    notes: list[str] = []
    SecretFiles(host, notes).remove([Script(id="a", directory="/work", text="")])
    assert notes == []


def test_a_secret_cut_by_the_beginning_of_a_failed_task_s_log_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_TOKEN", "very-secret-7d1f9c")
    progress = "━" * 40 + "\n"  # each character has 3 bytes
    rest = progress * (TAIL_BYTES // len(progress.encode()) - 1)
    end = "7d1f9c\n".ljust(TAIL_BYTES - len(rest.encode()), "-") + rest
    (tmp_path / "log").write_text(f"very-secret-{end}")
    script = Script(id="t", directory=str(tmp_path), text="", logs=FrozenMap({"image": (f"{tmp_path}/log",)}))
    plan = TaskPlan(task=Task(key="t", kind="image", work=":", check=""), script=script, on="host")
    failure, kept = find_task_failure(plan, JobStatus(state="ended", cause="failed", exit_code=1), LocalHost())
    assert "━" in kept
    assert "7d1f9c" not in kept + failure.reason


@pytest.mark.parametrize(("separator", "first"), [(" ", "... word"), ("-", "... ")])
def test_a_long_last_line_of_a_running_job_is_cut_between_words(separator: str, first: str) -> None:
    line = separator.join(f"word{number}" for number in range(100))
    unit: Any = SimpleNamespace()
    script = Script(id="job", directory="/job", text="")
    polled = [(unit, JobStatus(state=state, reason=line), script) for state in ("running", "ended")]
    running, ended = (status.reason for _, status in mask_reasons(polled) if isinstance(status, JobStatus))
    assert running.startswith(first)
    assert line.endswith(running.removeprefix("... "))
    assert 100 < len(running) <= len("... ") + SHOWN_CHARACTERS
    assert ended == line


def test_a_long_progress_bar_of_a_running_job_is_not_left_out() -> None:
    unit: Any = SimpleNamespace()
    script = Script(id="job", directory="/job", text="")
    [(_, status)] = mask_reasons([(unit, JobStatus(state="running", reason=f"{'━' * 300} 45 %"), script)])
    assert isinstance(status, JobStatus)
    assert status.reason.endswith("━━━━ 45 %")
