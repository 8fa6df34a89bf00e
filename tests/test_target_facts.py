"""The facts of a target: each run has those of its own target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import llmb


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a Docker without permission for this user. Return a file with one line per call."""
    calls, stub = tmp_path / "calls", tmp_path / "bin/docker"
    stub.parent.mkdir()
    stub.write_text(f"#!/bin/sh\necho x >>{calls}\necho permission denied >&2\nexit 1\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(stub.parent), prepend=":")
    return calls


@pytest.mark.parametrize("runtimes", [["docker", "none"], ["none", "docker"]])
def test_a_run_is_rejected_for_what_its_own_target_lacks_in_any_order_of_runs(
    toy: Any, calls: Path, runtimes: list[str]
) -> None:
    sweep = {"target.runtime": runtimes, "target.container": [{"ipc": "host"}, {"ipc": "private"}]}
    spec = toy.spec(workload={"image": "example.org/x:1"}, sweep=sweep)
    with pytest.raises(llmb.LlmbError, match="permission denied"):
        llmb.start(llmb.load(spec))
    assert toy.records == []
    assert calls.read_text() == "x\n"  # once for all targets of the same probe


def test_a_docker_daemon_that_hangs_is_reported(toy: Any, calls: Path) -> None:
    stub = calls.parent / "bin/timeout"
    stub.write_text("#!/bin/sh\necho '||null'\nexit 124\n")  # what docker prints if timeout ends it
    stub.chmod(0o755)
    spec = toy.spec(workload={"image": "example.org/x:1"}, target={"runtime": "docker"})
    with pytest.raises(llmb.LlmbError, match=r"^the Docker daemon does not respond; check `sudo systemctl status"):
        llmb.start(llmb.load(spec))


def test_no_engine_is_called_if_no_run_has_an_image(toy: Any, calls: Path) -> None:
    with llmb.start(llmb.load(toy.spec())) as session:
        session.wait()
    assert [result.state for result in session.results] == ["completed"]
    assert not calls.exists()
