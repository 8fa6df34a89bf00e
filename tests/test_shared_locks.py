"""Locks in a folder that others can write: neither a name nor a content makes llmb touch what is not its own."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
HOST = platform.node()


@pytest.fixture
def lock(toy: Any) -> Path:
    """Return the path of the lock, which does not exist yet."""
    return Path(toy.folder / "machine.lock")


@pytest.mark.parametrize("name", ["", ".queue", ".turn-1"])
@pytest.mark.parametrize("kind", ["symbolic link, not a regular file", "hard link of another file"])
def test_a_lock_that_is_a_link_is_not_followed(toy: Any, lock: Path, name: str, kind: str) -> None:
    victim = toy.folder / "victim"
    victim.write_text("precious\n")
    planted = Path(f"{lock}{name}")
    (planted.symlink_to if kind.startswith("symbolic") else planted.hardlink_to)(victim)
    if name == ".turn-1":
        assert toy.run()["state"] == "completed"  # the next number is free
    else:
        run = toy.run()
        assert run["state"] == "failed"
        assert f"the lock {planted} on {HOST} is a {kind}; run `rm {planted}` there" in run["reason"]
    assert victim.read_text() == "precious\n"


@pytest.mark.parametrize("name", ["", ".queue", ".turn-1"])
@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_a_lock_that_is_no_file_does_not_block_a_job(toy: Any, lock: Path, name: str, kind: str) -> None:
    planted = Path(f"{lock}{name}")
    if kind == "fifo":
        os.mkfifo(planted)
    else:
        planted.mkdir()
    run = toy.run()
    if name == ".turn-1":
        assert run["state"] == "completed"
    else:
        assert run["state"] == "failed"
        remedy = "rm" if kind == "fifo" else "rmdir"
        message = (
            f"the lock {planted} on {HOST} is a {kind}, not a regular file; run `{remedy} {planted}` there, or set"
        )
        assert message in run["reason"]


@pytest.mark.parametrize("names", [["a[$(touch pwned)]"], ["", "08", "1;touch pwned", "99999999999999999999"]])
def test_names_beside_the_lock_are_not_run_as_commands(toy: Any, lock: Path, names: list[str]) -> None:
    for name in (f"turn-{each}" for each in names):
        lock.with_name(f"{lock.name}.{name}").touch()
    assert toy.run()["state"] == "completed"
    assert not list(toy.folder.rglob("pwned"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create files of another user")
def test_nothing_is_written_in_the_directory_of_a_task_of_another_user(toy: Any) -> None:
    spec = toy.spec(framework={"task": "data"}, target={"shared": True})
    assert toy.llmb("run", spec).returncode == 0
    [task] = (toy.home / "work/tasks").iterdir()
    victim = toy.folder / "victim"
    victim.write_text("precious")
    shutil.rmtree(task)
    shutil.rmtree(toy.home / "work/cache")
    task.mkdir()
    for name in ("submit", "started", "job.sh", "out.log"):
        (task / name).symlink_to(victim)
    os.chown(task, NOBODY, NOBODY)
    failed = toy.llmb("run", spec)
    assert failed.returncode == 4
    assert f"{task} belongs to nobody, who may be creating this for a run of the same kind" in failed.stderr
    assert sorted(each.name for each in task.iterdir()) == ["job.sh", "out.log", "started", "submit"]
    assert victim.read_text() == "precious"
    shutil.rmtree(task)
    attached = toy.llmb("attach")  # as if the other user had removed it
    assert attached.returncode == 0, attached.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create files of another user")
def test_a_failed_task_of_another_user_can_be_moved_away_to_try_again(toy: Any) -> None:
    failing = toy.spec(framework={"task": "data", "task_end": "exit 3"}, target={"shared": True})
    assert toy.llmb("run", failing).returncode == 1
    [task] = (toy.home / "work/tasks").iterdir()
    os.chown(task, NOBODY, NOBODY)
    spec = toy.spec(framework={"task": "data"}, target={"shared": True})
    blocked = toy.llmb("run", spec)
    assert blocked.returncode == 4
    assert (
        f"{task} belongs to nobody, whose job ended without creating this; if the scheduler will not start"
        in blocked.stderr
    )
    assert f"move it away on {HOST}: `mv" in " ".join(blocked.stderr.split())
    _, move, _, resume, *_ = blocked.stderr.split("`")
    subprocess.run(["bash", "-c", move], check=True)
    assert toy.llmb(*shlex.split(resume)[1:]).returncode == 0
    assert len([each for each in task.parent.iterdir() if each.owner() == "nobody"]) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create files of another user")
def test_a_lock_that_names_the_directory_of_another_user_removes_no_container(
    toy: Any, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted directory named any container, and root removed it."""
    programs, planted = toy.folder / "programs", toy.folder / "planted"
    programs.mkdir()
    planted.mkdir()
    (programs / "docker").write_text(f'#!/bin/sh\necho "$@" >>{toy.folder}/removed\n')
    (programs / "docker").chmod(0o755)
    (planted / "container").write_text("docker database tcp://10.0.0.1:2375\n")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    lock.write_text(f"{planted}\n")
    os.chown(planted, NOBODY, NOBODY)
    assert toy.run()["state"] == "completed"
    assert not (toy.folder / "removed").exists()
    os.chown(planted, 0, 0)  # its own
    lock.write_text(f"{planted}\n")
    assert toy.run()["state"] == "completed"
    assert "rm --force --volumes database" in (toy.folder / "removed").read_text()
