"""Log files, read in blocks and from their end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmb.logs import read_blocks
from llmb.logs.read_blocks import blocks_of, end_of


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "rank0.log"
    path.write_bytes(b"0123456789")
    return path


def test_a_log_is_read_in_blocks_from_an_offset(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_blocks, "BLOCK_BYTES", 4)

    assert list(blocks_of(log)) == [b"0123", b"4567", b"89"]
    assert list(blocks_of(log, 9)) == [b"9"]
    assert list(blocks_of(log, 10)) == []


def test_a_missing_log_is_empty_and_a_directory_is_unreadable(tmp_path: Path) -> None:
    assert list(blocks_of(tmp_path / "missing.log")) == []
    with pytest.raises(IsADirectoryError):
        list(blocks_of(tmp_path))


def test_the_end_of_a_log_is_not_read_from_a_pipe(log: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert (end_of(log, 3), end_of(log, 99)) == (b"789", b"0123456789")
    assert end_of(tmp_path / "pipe", 3) == end_of(tmp_path / "missing.log", 3) == b""
