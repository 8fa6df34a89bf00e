"""The order in which jobs of this machine start."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from llmb import Host, Job, JobHandle, Phase, Script, Target
from llmb.hosts.local_host import LocalHost
from llmb_local.options import LocalOptions
from llmb_local.plugin import Local

TIMEOUT_S = 60


def scripts(workdir: Path, names: str) -> list[Script]:
    """Return the scripts of jobs that do nothing, by their names of one letter."""
    options = LocalOptions(lock=f"{workdir}/lock")
    target = Target(scheduler="local", workdir=str(workdir), options=options)
    phases = (Phase(name="job", command=("true",)),)
    settings: Any = {"nodes": 1, "tasks_per_node": 1, "gpus_per_node": 0, "time_limit_s": 60}
    jobs = (Job(id=name, directory=f"{workdir}/runs/{name}", phases=phases, **settings) for name in names)
    return [Local().build_job(job, target) for job in jobs]


def test_jobs_of_several_submissions_start_in_their_order(tmp_path: Path) -> None:
    local, host, names = Local(), LocalHost(), "abcdefghijkl"
    jobs = scripts(tmp_path, names)
    handles = [*local.submit(jobs[:8], host).values(), *local.submit(jobs[8:], host).values()]
    end_s = time.monotonic() + TIMEOUT_S
    while {each.state for each in local.poll(handles, host).values()} != {"ended"}:
        assert time.monotonic() < end_s
    started_ns = {name: (tmp_path / "runs" / name / "begun").stat().st_mtime_ns for name in names}
    assert sorted(names, key=started_ns.__getitem__) == list(names)


def test_no_two_jobs_wait_for_each_other_if_one_is_submitted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: dict[str, str] = {}

    def submit(jobs: Sequence[Script], host: Host) -> dict[str, JobHandle]:
        before.update({each.id: Path(each.files[f"{each.directory}/after"].strip()).name for each in jobs})
        return {}

    monkeypatch.setattr("llmb_local.plugin.submit_detached", submit)
    local = Local()
    local.submit(scripts(tmp_path, "ab"), LocalHost())
    assert before == {"a": "", "b": "a"}
    local.submit(scripts(tmp_path, "cad"), LocalHost())
    assert before == {"a": "", "b": "a", "c": "b", "d": "a"}
