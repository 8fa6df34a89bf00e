"""Logs whose lines are inside JSON records or in UTF-16, as containers, log services and Windows save them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

STEP = "completed step: {number}, seconds: 1.5{number}0, TFLOP/s/device: 100.000, loss: 9.000"
TEXT = "".join(
    line + "\n"
    for line in [
        "1: \x1b[32mConfig param steps: 20\x1b[0m",
        *(f"1: \x1b[32m{STEP.format(number=number)}\x1b[0m" for number in range(5)),
        "3: Traceback (most recent call last):",
        '3:   File "/app/train.py", line 7, in <module>',
        "3: jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.",
    ]
)


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


def records(**others: str) -> bytes:
    lines = TEXT.splitlines(keepends=True)
    return "".join(json.dumps({"log": line, "stream": "stderr", **others}) + "\n" for line in lines).encode()


@pytest.mark.parametrize("name", ["run-json.log", "run-json.log.gz", "utf16.log"])
@pytest.mark.parametrize("framework", [(), ("--framework", "maxtext")])
def test_a_log_has_the_same_steps_and_failure_as_its_lines(
    llmb: Llmb, tmp_path: Path, name: str, framework: tuple[str, ...]
) -> None:
    plain, wrapped = tmp_path / "run.log", tmp_path / name
    plain.write_text(TEXT)
    data = TEXT.replace("\n", "\r\n").encode("utf-16") if name == "utf16.log" else records(time="2026-01-02T03:04:05Z")
    wrapped.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    parsed = [json.loads(llmb("parse", log, "--json", *framework).out) for log in (plain, wrapped)]
    assert parsed[1] == parsed[0]
    assert (parsed[0]["status"], len(parsed[0]["steps"])) == ("incomplete", 5)
    assert (parsed[0]["failure"]["rank"], parsed[0]["failure"]["line"]) == (3, 9)


def test_wrapped_logs_are_found_in_a_directory(llmb: Llmb, tmp_path: Path) -> None:
    (tmp_path / "0a1b-json.log").write_bytes(records(time="2026-01-02T03:04:05Z"))
    (tmp_path / "utf16.log").write_bytes(TEXT.encode("utf-16"))
    answer = llmb("parse", tmp_path)
    assert answer.out.count("the accelerator is out of memory") == 2
