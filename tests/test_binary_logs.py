"""Logs in a directory that begin with a hole or with other bytes, and files that are mostly not text."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

STEPS = "".join(f"completed step: {step}, seconds: 2.000, loss: 8.000\n" for step in range(5)).encode()
LINES = b"loading\n" * 30_000
OTHER_BYTES = random.Random(1).randbytes(1 << 20)


@pytest.fixture
def parse(capsys: pytest.CaptureFixture[str]) -> Llmb:
    llmb = command_line(capsys)
    return lambda *arguments: llmb("parse", *arguments, "--framework", "maxtext")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
@pytest.mark.parametrize(
    "content",
    [
        bytes(1 << 16) + LINES,
        bytes(3 << 20) + LINES,
        OTHER_BYTES[:70_000] + LINES,
        OTHER_BYTES[:70_000] + LINES + bytes(1 << 20) + LINES,
    ],
    ids=["a hole", "a large hole", "other bytes", "a hole in the middle"],
)
def test_a_log_that_is_mostly_text_is_read(
    parse: Llmb, tmp_path: Path, content: bytes, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / ("run.log" if pack is bytes else "run.log.gz")).write_bytes(pack(content + b"\n" + STEPS))

    assert parse(tmp_path, "--json").json["summary"] == {"succeeded": 1, "failed": 0}


def test_a_text_without_steps_after_a_hole_is_not_binary(parse: Llmb, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(bytes(1 << 16) + LINES)

    for path in (log, tmp_path):
        answer = parse(path)
        assert answer.status == 1
        assert "binary" not in answer.err


def test_a_large_file_that_is_mostly_not_text_is_not_read(parse: Llmb, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.log"
    checkpoint.write_bytes(OTHER_BYTES * 20 + STEPS)
    [passed_over] = parse(tmp_path, "--json").json["passed_over"]

    assert passed_over == {"path": str(checkpoint), "reason": "is binary, and not a log of maxtext"}
