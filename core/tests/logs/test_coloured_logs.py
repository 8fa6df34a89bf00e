"""Causes of failure in lines with colour codes, which logs of terminals and coloured log handlers contain."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs import read_blocks
from llmb.logs.ansi_escapes import PlainText
from llmb.logs.failures.choose_cause import diagnose
from llmb.values.failure import Signature

SKY = Signature(needle="error: the sky fell on node", cause="the sky fell", remedy="wait", primary=False)
SURVIVABLE = Signature(needle="no answer of the moon", cause="no moon", remedy="wait", survivable=True)
RED, BOLD, END = "\x1b[31m", "\x1b[1m", "\x1b[0m"


def write(folder: Path, text: str) -> Path:
    log = folder / "run.log"
    log.write_text(text)
    return log


@pytest.mark.parametrize(
    "message",
    [
        f"{RED}daemon: error: the sky fell on node a12{END}",
        f"{RED}daemon{END}: {BOLD}error:{END} the sky {RED}fell{END} on node a12",
        f"error: the sky fell{END} {RED}{BOLD}on node a12",
    ],
)
def test_a_cause_is_found_in_a_message_with_colours(tmp_path: Path, message: str) -> None:
    found = diagnose([write(tmp_path, f"{BOLD}step 1{END}\n{message}\nstep 2\n")], [SKY])

    assert found is not None
    assert (found.cause, found.line) == ("the sky fell", 2)
    assert found.evidence.endswith("error: the sky fell on node a12")


@pytest.mark.parametrize("size", range(20, 80, 7))
def test_a_cause_with_colours_is_found_across_blocks(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_blocks, "BLOCK_BYTES", size)
    found = diagnose([write(tmp_path, f"step 1\nerror: the {RED}sky{END} fell {RED}on{END} node a12\n" * 3)], [SKY])

    assert found is not None
    assert found.line == 2


def test_a_warning_with_colours_is_no_cause(tmp_path: Path) -> None:
    log = write(tmp_path, f"{RED}WARNING{END} error: the sky fell on node a12\nValueError: the cause\n")
    found = diagnose([log], [SKY])

    assert found is not None
    assert found.cause == "a process failed with ValueError"


def test_a_process_survives_an_error_with_colours(tmp_path: Path) -> None:
    steps = "".join(f"step {number}\n" for number in range(20))
    log = write(tmp_path, f"no {RED}answer{END} of the moon\n{steps}error: the sky fell on node a12\n")
    found = diagnose([log], [SURVIVABLE, SKY])

    assert found is not None
    assert found.cause == "the sky fell"


def test_places_in_a_text_without_colours_are_those_of_the_log() -> None:
    data = b"a\x1b[31mb\x1b[0m\x1b[1mc\x1b[2;3Hd"
    plain = PlainText(data)

    assert plain.text == b"abc\rd"
    assert [data[plain.place_in_log(place) :][:1] for place in (0, 1, 2, 4)] == [b"a", b"b", b"c", b"d"]
