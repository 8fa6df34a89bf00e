"""What is known of a target: each run has the facts of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import llmb


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Docker that this user may not use; the file tells how often it was asked."""
    asked, stub = tmp_path / "asked", tmp_path / "bin/docker"
    stub.parent.mkdir()
    stub.write_text(f"#!/bin/sh\necho x >>{asked}\necho permission denied >&2\nexit 1\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(stub.parent), prepend=":")
    return asked


@pytest.mark.parametrize("runtimes", [["docker", "none"], ["none", "docker"]])
def test_a_run_is_refused_for_what_its_own_target_lacks_whichever_run_comes_first(
    toy: Any, asked: Path, runtimes: list[str]
) -> None:
    sweep = {"target.runtime": runtimes, "target.container": [{"ipc": "host"}, {"ipc": "private"}]}
    spec = toy.spec(workload={"image": "example.org/x:1"}, sweep=sweep)
    with pytest.raises(llmb.LlmbError, match="permission denied"):
        llmb.start(llmb.load(spec))
    assert toy.records == []
    assert asked.read_text() == "x\n"  # once for all targets of the same probe


def test_no_engine_is_asked_where_nothing_has_an_image(toy: Any, asked: Path) -> None:
    with llmb.start(llmb.load(toy.spec())) as session:
        session.wait()
    assert [result.state for result in session.results] == ["completed"]
    assert not asked.exists()
