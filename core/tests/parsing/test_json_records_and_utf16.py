"""Conversion of logs into lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from llmb.parsing.json_records_and_utf16 import converted, needs_conversion

LINES = ["3: step 1: \x1b[1m1.5\x1b[0m s", 'a "quoted" word', "", "é"]
TIME = "2026-01-02T03:04:05Z"


def records(*texts: object, key: str = "log", **others: object) -> bytes:
    return b"".join(json.dumps({key: text, **others}).encode() + b"\n" for text in texts)


def text_of(log: bytes, size: int = 1 << 20) -> str:
    assert needs_conversion(log)
    blocks: Iterator[bytes] = (log[place : place + size] for place in range(0, len(log), size))
    return b"".join(converted(blocks)).decode()


@pytest.mark.parametrize("size", [300, 1 << 20])
@pytest.mark.parametrize(
    "log",
    [
        records(*(line + "\n" for line in LINES), stream="stdout", time=TIME),
        records(*LINES, stream="stderr", kubernetes={"pod_name": "llm-0"}),
        records(*LINES, key="message", kubernetes={"pod_name": "llm-0"}),
        records(*LINES, key="line", labels={"app": "llm"}, timestamp=TIME),
        records(*LINES, key="textPayload", severity="INFO", timestamp=TIME),
        records(*LINES, key="MESSAGE", __REALTIME_TIMESTAMP="1767323045000000"),
        records(*([*line.encode()] for line in LINES), key="MESSAGE", __REALTIME_TIMESTAMP="1767323045000000"),
    ],
)
def test_each_record_of_a_log_service_becomes_its_line(log: bytes, size: int) -> None:
    assert text_of(log, size) == "\n".join([*LINES, ""])


def test_the_parts_of_a_line_that_docker_splits_are_joined() -> None:
    log = records("step 1: ", "1.5 s\n", "step 2: 1.5 s\n", stream="stdout", time=TIME)
    assert text_of(log) == "step 1: 1.5 s\nstep 2: 1.5 s\n"


@pytest.mark.parametrize("first", ["", 'cut off"}\n', "a line of the daemon\n"])
def test_lines_that_are_no_records_remain(first: str) -> None:
    record = records("step 1: 1.5 s\n", stream="stdout", time=TIME).decode()
    assert text_of(f"{first}{record}{{not json\n{record[:20]}".encode()) == (
        f"{first}step 1: 1.5 s\n{{not json\n{record[:20]}"
    )


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_decoded(encoding: str) -> None:
    text = "step 1: 1.5 s\r\né\r\n"
    log = text.encode(encoding) if encoding == "utf-16" else ("\ufeff" + text).encode(encoding)
    assert text_of(log, 5 if encoding == "utf-16" else 1 << 20) == text


@pytest.mark.parametrize(
    "log",
    [
        b"step 1: 1.5 s\n",
        b'{"step": 1, "loss": 2.5, "message": "a step", "timestamp": 17.0}\n',  # of a training
        b"{not json\n",
        b"",
    ],
)
def test_other_logs_remain_as_they_are(log: bytes) -> None:
    assert not needs_conversion(log)
    assert b"".join(converted(iter([log]))) == log
