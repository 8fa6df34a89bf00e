"""Atomic writes."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llmb.files import write_atomically


def test_a_write_follows_no_link_that_another_user_planted(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".log.{os.getpid()}-{threading.get_native_id()}.partial").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "log", b"new")
    assert victim.read_text() == "precious"
    write_atomically(tmp_path / "log", b"new")  # the link is removed
    assert (tmp_path / "log").read_text() == "new"


@pytest.mark.parametrize("is_read", [False, True])
def test_a_write_does_not_go_to_a_pipe_that_another_user_planted(tmp_path: Path, is_read: bool) -> None:
    pipe = tmp_path / f".log.{os.getpid()}-{threading.get_native_id()}.partial"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # without a reader, a write would wait for one
    if not is_read:
        os.close(reader)
    with pytest.raises(OSError, match="Not a regular file"):
        write_atomically(tmp_path / "log", b"new")
    if is_read:
        assert os.read(reader, 9) == b""
        os.close(reader)
    write_atomically(tmp_path / "log", b"new")  # the pipe is removed
    assert (tmp_path / "log").read_text() == "new"


def test_threads_may_write_the_same_file(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: write_atomically(tmp_path / "log", b"new"), range(40)))
    assert [file.name for file in tmp_path.iterdir()] == ["log"]
