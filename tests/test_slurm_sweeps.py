"""``target.max_jobs`` on a real Slurm cluster, and phases of which one rank ends before the others."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import wait_until

pytestmark = pytest.mark.real


def ended_jobs(toy: Any) -> list[tuple[str, str]]:
    """Return the time of submission and the end of each job of the sweep that ended, as accounting knows them."""
    names = {record.name for record in toy.records}
    lines = toy.cluster.accounts("JobName,Submit,End")
    jobs = [line.split("|") for line in lines]
    return [(submit, end) for name, submit, end in jobs if name in names and end != "Unknown"]


def most_jobs_at_a_time(toy: Any) -> int:
    """Return the highest number of jobs that were pending or running at the same time, by the times of Slurm."""
    # Accounting contains the end of a job a moment after the queue.
    wait_until(lambda: len(ended_jobs(toy)) == len(toy.records), "the end of each job in accounting")
    changes = [(datetime.fromisoformat(submit), 1) for submit, _ in ended_jobs(toy)]
    changes += [(datetime.fromisoformat(end), -1) for _, end in ended_jobs(toy)]
    jobs_now, most = 0, 0
    for _, change in sorted(changes):
        jobs_now += change
        most = max(most, jobs_now)
    return most


def test_three_processes_that_attach_share_the_limit_of_a_sweep(toy_slurm: Any) -> None:
    framework = {"gate": str(toy_slurm.gate)}
    spec = toy_slurm.spec(sweep={"env.LEVEL": list("abcdefg")}, target={"max_jobs": 2}, framework=framework)
    detached = toy_slurm.llmb("run", spec, "--detach")
    assert "not submitted yet: 5 runs" in detached.stderr
    toy_slurm.gate.touch()
    processes = [toy_slurm.start("attach") for _ in range(3)]
    for process in processes:
        _, messages = process.communicate()
        assert process.returncode == 0, messages
    assert {run["state"] for run in toy_slurm.runs("runs")} == {"completed"}
    assert [line.split()[0] for line in toy_slurm.journal("end")] == ["end"] * 7
    assert most_jobs_at_a_time(toy_slurm) <= 2


def test_a_rank_that_ends_early_ends_the_phase_after_the_wait(toy_slurm: Any) -> None:
    """The other rank would wait until the time limit, on a node of its own."""
    waiting = {"gate": str(toy_slurm.gate), "gate_step": 3, "end": "exit 0", "end_step": 2, "end_rank": 1}
    tables = {"workload": {"gpus": 2}, "target": {"gpus_per_node": 1, "wait": 2}}
    run = toy_slurm.follow(framework=waiting, **tables)
    assert run["state"] == "failed"
    assert re.search("after [0-3] of 5 steps", run["reason"]), run  # rank 0 may start later than rank 1
    assert "First task exited 2s ago" in (Path(run["directory"]) / "logs/slurm.log").read_text()
