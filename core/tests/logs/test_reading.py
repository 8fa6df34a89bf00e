"""Files that grow, read in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from llmb.logs import read_blocks
from llmb.logs.read_blocks import blocks_of, feed_file
from llmb.values.steps import Notice, Step


class Recorder:
    """A parser that remembers what it was fed."""

    def __init__(self) -> None:
        self.fed: list[tuple[bytes, str]] = []

    def feed(self, block: bytes, source: str = "") -> Sequence[Step | Notice]:
        self.fed.append((block, source))
        return [Step(step=len(self.fed))]

    def close(self) -> Sequence[Step | Notice]:
        return ()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "rank0.log"
    path.write_bytes(b"0123456789")
    return path


def test_a_second_call_reads_only_what_is_new(log: Path) -> None:
    parser, found = Recorder(), list[Step | Notice]()
    offset = feed_file(parser, log, 0, found.extend)
    with log.open("ab") as file:
        file.write(b"abc")

    assert offset == 10
    assert feed_file(parser, log, offset, found.extend) == 13
    assert feed_file(parser, log, 13, found.extend) == 13
    assert parser.fed == [(b"0123456789", str(log)), (b"abc", str(log))]
    assert found == [Step(step=1), Step(step=2)]


def test_a_log_is_read_in_blocks(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_blocks, "BLOCK", 4)

    assert list(blocks_of(log)) == [b"0123", b"4567", b"89"]
    assert list(blocks_of(log, 9)) == [b"9"]


def test_a_log_may_be_given_a_name_of_its_own(log: Path) -> None:
    parser = Recorder()
    feed_file(parser, log, 0, list[Step | Notice]().extend, source="rank 0")

    assert parser.fed == [(b"0123456789", "rank 0")]


def test_an_empty_log_is_none_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()

    assert feed_file(Recorder(), tmp_path / "empty.log", 0, list[Step | Notice]().extend) == 0
    assert list(blocks_of(tmp_path / "missing.log")) == []
    with pytest.raises(FileNotFoundError):
        feed_file(Recorder(), tmp_path / "missing.log", 0, list[Step | Notice]().extend)


def test_what_is_no_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        feed_file(Recorder(), tmp_path, 0, list[Step | Notice]().extend)
