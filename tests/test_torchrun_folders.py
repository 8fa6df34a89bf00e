"""The logs that torchrun writes into a folder for each attempt and local rank."""

from __future__ import annotations

from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

import llmb as library

OOM = "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n"
STEP = "completed step: {}, seconds: 7.0, TFLOP/s/device: 400.1, Tokens/s/device: 900.2, total_weights: 9, loss: 8\n"
STEPS = 20


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Write the logs of two attempts: rank 1 fails in the first one."""
    for attempt, first, last in ((0, 0, 9), (1, 5, STEPS - 1)):
        for rank in range(4):
            folder = tmp_path / f"none_ab/attempt_{attempt}/{rank}"
            folder.mkdir(parents=True)
            (folder / "stdout.log").write_text("".join(STEP.format(step) for step in range(first, last + 1)))
            (folder / "stderr.log").write_text(OOM if (attempt, rank) == (0, 1) else "")
    return tmp_path / "none_ab"


def test_an_attempt_after_which_torchrun_started_again_is_not_the_end_of_the_run(logs: Path) -> None:
    run = library.parse(sorted(logs.rglob("*.log")), framework="maxtext")
    assert (run.status, run.failure, len(run.steps)) == ("complete", None, STEPS)


def test_the_local_rank_of_a_folder_is_the_rank_that_failed(logs: Path, llmb: Llmb) -> None:
    failure = library.parse(sorted((logs / "attempt_0").rglob("*.log")), framework="maxtext").failure
    assert failure
    assert (failure.cause, failure.rank, failure.host) == ("the accelerator is out of memory", 1, None)
    assert "failed on  rank 1\n" in llmb("parse", logs / "attempt_0/1/stderr.log", "--framework", "maxtext").out


def test_a_directory_names_the_attempt_and_the_local_rank_of_each_log(logs: Path, llmb: Llmb) -> None:
    shown = llmb("parse", logs, "--framework", "maxtext").out
    names = [line.split()[0] for line in shown.splitlines()[1:-1]]
    stdouts = [f"attempt_{attempt}/{rank}/stdout" for attempt in (0, 1) for rank in range(4)]
    assert names == sorted([*stdouts, "attempt_0/1/stderr"])


def test_logs_of_one_attempt_are_named_by_their_local_rank(logs: Path, llmb: Llmb) -> None:
    paths = [logs / f"attempt_0/{rank}/stdout.log" for rank in range(4)]
    shown = llmb("parse", *paths, "--framework", "maxtext").out
    assert [line.split()[0] for line in shown.splitlines()[1:-1]] == [f"{rank}/stdout" for rank in range(4)]
