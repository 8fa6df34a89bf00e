"""nemo_rank_wrapper.sh, executed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from parts.deadline import DEADLINE_S

from llmb import Job, Run
from llmb_nemo_launcher.plugin import NeMoLauncher

LoadRun = Callable[..., "Run[Any]"]


def job_of(run: Run[Any]) -> Job:
    return NeMoLauncher().build_job(run)


def test_the_wrapper_creates_folders_and_exports_the_rank_of_the_node(load_run: LoadRun, tmp_path: Path) -> None:
    run = load_run("llama3.1-70b", "bf16", 64)
    job = job_of(attrs.evolve(run, options=attrs.evolve(run.options, nemo=str(tmp_path))))
    (tmp_path / "nemo_rank_wrapper.sh").write_text(job.files["/w/runs/RUN/nemo_rank_wrapper.sh"])
    code = 'echo "$PWD|$PYTHONPATH|$GROUP_RANK"'
    done = subprocess.run(
        ["bash", tmp_path / "nemo_rank_wrapper.sh", tmp_path, tmp_path / "a" / "b", "--", "bash", "-c", code],
        env={"LLMB_NODE_RANK": "3", "PATH": "/usr/bin:/bin", "PYTHONPATH": "/old"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == f"{tmp_path}|{tmp_path}:/old|3\n"
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize("status", [0, 3])
def test_progress_bars_become_lines_and_the_exit_code_is_kept(load_run: LoadRun, tmp_path: Path, status: int) -> None:
    (tmp_path / "nemo_rank_wrapper.sh").write_text(
        job_of(load_run("llama3.1-70b", "bf16", 64)).files["/w/runs/RUN/nemo_rank_wrapper.sh"]
    )
    code = f"printf '\\rone'; printf '\\rtwo' >&2; exit {status}"
    done = subprocess.run(
        ["bash", tmp_path / "nemo_rank_wrapper.sh", tmp_path, "--", "bash", "-c", code],
        env={"LLMB_NODE_RANK": "0", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (status, "\none\ntwo", "")


@pytest.mark.slow
def test_a_process_left_behind_by_the_training_does_not_delay_the_end(load_run: LoadRun, tmp_path: Path) -> None:
    (tmp_path / "nemo_rank_wrapper.sh").write_text(
        job_of(load_run("llama3.1-70b", "bf16", 64)).files["/w/runs/RUN/nemo_rank_wrapper.sh"]
    )
    code = "sleep 300 & echo $! >left; printf 'last words'; exit 3"
    log = tmp_path / "log"
    try:
        with log.open("w") as out:
            done = subprocess.run(
                ["bash", tmp_path / "nemo_rank_wrapper.sh", tmp_path, "--", "bash", "-c", code],
                env={"LLMB_NODE_RANK": "0", "PATH": "/usr/bin:/bin"},
                stdout=out,
                check=False,
                timeout=DEADLINE_S,
            )
    finally:
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)

    assert (done.returncode, log.read_text()) == (3, "last words")


def test_an_image_without_nemo_is_reported_in_one_line(load_run: LoadRun, tmp_path: Path) -> None:
    (tmp_path / "nemo_rank_wrapper.sh").write_text(
        job_of(load_run("llama3.1-70b", "bf16", 64)).files["/w/runs/RUN/nemo_rank_wrapper.sh"]
    )
    done = subprocess.run(
        ["bash", tmp_path / "nemo_rank_wrapper.sh", "/not/there", "--", "true"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("folder /not/there not found; set nemo and launcher in [framework]")
