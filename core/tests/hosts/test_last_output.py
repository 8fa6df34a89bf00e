"""The last output of processes, from their logs."""

from __future__ import annotations

import os
from pathlib import Path

from llmb.hosts.last_output import read_last_outputs
from llmb.hosts.local_host import LocalHost


def write_log(file: Path, text: str, time_s: int) -> str:
    file.write_text(text)
    os.utime(file, (time_s, time_s))
    return str(file)


def test_the_last_line_of_the_newest_log_counts(tmp_path: Path) -> None:
    first = write_log(tmp_path / "it's 1.log", "downloaded\n", 1000)
    second = write_log(tmp_path / "2.log", "file 1\nfile\t2\n", 2000)
    third = write_log(tmp_path / "3.log", "", 3000)
    logs = {"a": [first, second, third], "b": [first], "c": [third, str(tmp_path / "none")], "d": []}
    assert read_last_outputs(logs, LocalHost()) == {"a": "file 2", "b": "downloaded", "c": "", "d": ""}


def test_of_a_progress_bar_its_last_state_counts(tmp_path: Path) -> None:
    log = write_log(tmp_path / "1.log", "10 %\r20 %\r", 1000)
    assert read_last_outputs({"a": [log]}, LocalHost()) == {"a": "20 %"}
