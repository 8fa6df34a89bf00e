"""The containers of jobs that were killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmb import JobHandle
from llmb.hosts.local_host import LocalHost
from llmb_local.plugin import Local


def test_an_engine_that_does_not_respond_does_not_hide_the_end_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb_local.runtimes.container_cleanup.TIMEOUT_S", 0.5)
    docker = tmp_path / "bin/docker"
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\nexec sleep 300\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")
    for name, text in {"started": "1 1 another boot", "ended": "137\tfailed\t", "container": "docker llmb-a "}.items():
        (tmp_path / name).write_text(f"{text}\n")
    status = Local().poll([JobHandle(id="a", directory=str(tmp_path))], LocalHost())["a"]
    assert (status.state, status.exit_code) == ("ended", 137)
    assert (tmp_path / "container").exists()  # by which the next job finds the container
