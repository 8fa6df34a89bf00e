"""The bash function that opens a lock in a directory that others can write."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from llmb import lock_function

LOCK = f"the lock lock on {platform.node()}"


def open_lock(folder: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    """Open the file `lock` of a folder after other commands. Print a word, or the error and exit with 3."""
    script = f'{lock_function()}\n{before}\nopen_lock lock || {{ echo "$lock_error"; exit 3; }}\necho opened'
    exported = {**os.environ, "HOSTNAME": "login1"}  # as Slurm copies it from the login node
    return subprocess.run(["bash", "-uc", script], cwd=folder, env=exported, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("plant", "kind"),
    [("ln -s victim", "symbolic link"), ("ln -s missing", "symbolic link"), ("mkfifo", "fifo")],
)
def test_what_appears_while_the_lock_is_opened_is_not_opened(tmp_path: Path, plant: str, kind: str) -> None:
    """The link or pipe appears after the first check: `umask` is called between the check and the opening."""
    (tmp_path / "victim").touch()
    done = open_lock(tmp_path, before=f'umask() {{ {plant} lock; builtin umask "$@"; }}')
    assert (tmp_path / "lock").is_symlink() or (tmp_path / "lock").is_fifo()
    assert not (tmp_path / "missing").exists()
    assert (done.returncode, done.stdout) == (3, f"{LOCK} is a {kind}, not a regular file; run `rm lock` there\n")


def test_a_pipe_that_replaces_the_lock_while_it_is_opened_blocks_nothing(tmp_path: Path) -> None:
    """The pipe appears after the last check: `exec` opens the lock."""
    plant = "case $BASH_COMMAND in exec*) rm lock; mkfifo lock; trap - DEBUG; esac"
    done = open_lock(tmp_path, before=f"set -T; trap '{plant}' DEBUG")
    assert (tmp_path / "lock").is_fifo()
    assert done.returncode == 3
    assert done.stdout == f"{LOCK} was replaced while llmb opened it; start again\n"


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        ("mkfifo lock", "is a fifo, not a regular file; run `rm lock` there"),
        ("mkdir lock", "is a directory, not a regular file; run `rmdir lock` there"),
        ("ln -s . lock", "is a symbolic link, not a regular file; run `rm lock` there"),
        ("ln victim lock", "is a hard link of another file; run `rm lock` there"),
    ],
)
def test_what_is_no_lock_is_named_with_the_command_that_removes_it(tmp_path: Path, plant: str, message: str) -> None:
    (tmp_path / "victim").touch()
    done = open_lock(tmp_path, before=plant)
    assert (done.returncode, done.stdout) == (3, f"{LOCK} {message}\n")
    subprocess.run(["bash", "-c", message.split("`")[1]], cwd=tmp_path, check=True)
    assert open_lock(tmp_path).stdout == "opened\n"


def test_all_users_can_take_a_lock_and_its_content_stays(tmp_path: Path) -> None:
    assert open_lock(tmp_path, before="umask 077").stdout == "opened\n"
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o666
    (tmp_path / "lock").write_text("content")
    assert open_lock(tmp_path).stdout == "opened\n"
    assert (tmp_path / "lock").read_text() == "content"
