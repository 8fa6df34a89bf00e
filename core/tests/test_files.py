"""Atomic writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmb.files import write_atomically


def test_a_write_follows_no_link_that_another_user_planted(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".log.{os.getpid()}.partial").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "log", b"new")
    assert victim.read_text() == "precious"
    write_atomically(tmp_path / "log", b"new")  # the link is removed
    assert (tmp_path / "log").read_text() == "new"
