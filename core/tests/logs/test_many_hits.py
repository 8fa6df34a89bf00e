"""Logs in which many lines contain a signature."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.failures.choose_cause import diagnose

LINES = 7_000  # more than the end of a log that is searched for a report
LINE = {
    "pattern that does not match": "request {} got completion with error\n",
    "pattern of several lines": "Root Cause (first observed failure): {}\n",
    "warning": "WARNING: No space left on device {}\n",
    "report of a launcher": "mpirun noticed that process rank {0} with PID 3 on node n{0} exited on signal 9\n",
}
CAUSES = {
    "pattern that does not match": None,
    "pattern of several lines": None,
    "warning": "a disk is full",
    "report of a launcher": "unknown: a process ended with signal 9",
}


@pytest.mark.parametrize("kind", LINE)
def test_each_line_of_a_log_may_contain_a_signature(tmp_path: Path, kind: str) -> None:
    log = tmp_path / "run.log"
    log.write_text("".join(LINE[kind].format(number) for number in range(LINES)))
    found = diagnose([log])
    assert (found.cause if found else None) == CAUSES[kind]


@pytest.mark.parametrize("before", [0, 1, 150, 5000])
@pytest.mark.parametrize("after", [0, 1, 5000])
def test_a_pattern_matches_near_the_ends_of_a_log_and_within_it(tmp_path: Path, before: int, after: int) -> None:
    log = tmp_path / "run.log"
    log.write_text("x\n" * before + "mlx5: node7: got completion with error:\n" + "y\n" * after)
    found = diagnose([log])
    assert found
    assert (found.host, found.line) == ("node7", before + 1)


def test_a_pattern_matches_only_from_the_line_of_its_signature_on(tmp_path: Path) -> None:
    """The first line contains the text of a signature, and a later line what its pattern requires."""
    log = tmp_path / "run.log"
    log.write_text("noticed that process rank\nnoticed that process rank 3 with PID 1 on node n7 exited on signal 9\n")
    found = diagnose([log])
    assert found
    assert (found.rank, found.host) == (3, "n7")
    log.write_text("Got async event\n" + "x\n" * 3 + "Got async event : port error\n")
    found = diagnose([log])
    assert found
    assert found.line == 5


def test_the_traceback_in_a_report_of_many_is_the_cause(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    root = (
        "Root Cause (first observed failure):\n  host      : w0\n  rank      : 3 (local_rank: 3)\n"
        "  exitcode  : 1 (pid: 7)\n  traceback : Traceback (most recent call last):\n"
        '    File "/opt/train.py", line 7, in <module>\n      main()\n  KeyError: 1\n'
    )
    log.write_text(LINE["report of a launcher"].format(5) * 50 + root + "=" * 60 + "\n")
    found = diagnose([log])
    assert found
    assert found.cause == "a process failed with KeyError"
