"""Logs of which every line is printed twice, as by two handlers of Python's logging."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import llmb
from llmb import ParsedLog

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared/logs"  # may be absent
OWN_FOLDERS = {
    ROOT / "plugins/megatron_bridge/tests/logs": "megatron_bridge",
    ROOT / "plugins/nemo_launcher/tests/logs": "nemo_launcher",
    ROOT / "plugins/maxtext/tests/logs": "maxtext",
}
FOLDERS = {
    **OWN_FOLDERS,
    SHARED / "megatron": "megatron_bridge",
    SHARED / "nemo": "nemo_launcher",
    SHARED / "maxtext": "maxtext",
}
LOGS = {log: framework for folder, framework in FOLDERS.items() for log in sorted(folder.glob("*.log"))}


def doubled(log: Path, folder: Path) -> Path:
    lines = log.read_bytes().splitlines(keepends=True)
    copy = folder / log.name
    copy.write_bytes(b"".join(line + (line if line.endswith((b"\n", b"\r")) else b"\n" + line) for line in lines))
    return copy


def result(parsed: ParsedLog) -> dict[str, Any]:
    """Return what a user sees of a log, without the places in it."""
    document = parsed.as_dict()
    if document["failure"]:
        document["failure"] |= {"line": None, "remedy": None}  # a remedy names the log
    goodput = parsed.series.count, parsed.series.checkpoints_s
    return {**document, "goodput": goodput, "reason": parsed.reason, "rank_times": parsed.rank_times}


@pytest.mark.parametrize("folder", OWN_FOLDERS, ids=OWN_FOLDERS.get)
def test_each_folder_of_the_project_has_logs(folder: Path) -> None:
    assert folder in {log.parent for log in LOGS}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_lines_printed_twice_change_no_result(log: Path, tmp_path: Path) -> None:
    once = llmb.parse(log, framework=LOGS[log])
    twice = llmb.parse(doubled(log, tmp_path), framework=LOGS[log])
    assert result(twice) == result(once)


def test_times_of_many_steps_of_a_rank_are_compared_although_lines_are_printed_twice(tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    step = "{rank}: completed step: {number}, seconds: {time_s}, TFLOP/s/device: 500.0, loss: 8.0\n"
    log.write_text(
        "".join(
            step.format(rank=rank, number=number, time_s=7.0 + rank / 10 + number % 7 / 100 - number / 1000)
            for number in range(180)
            for rank in range(8)
        )
    )
    (tmp_path / "twice").mkdir()
    twice_log = doubled(log, tmp_path / "twice")
    once, twice = (llmb.parse(each, framework="maxtext").rank_times for each in (log, twice_log))
    assert once is not None
    assert twice == once
