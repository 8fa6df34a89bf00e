"""Order of the reports in which the launchers of several nodes name a failed process."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.diagnose import diagnose
from llmb.values.failure import Failure, Signature

WATCHDOG = "[rank2]:[E1127 05:10:09 ProcessGroupNCCL.cpp:629] Watchdog caught collective operation timeout: x\n"


def report(rank: int, host: str, time: str, code: int = 1) -> str:
    """Return the end of what the elastic launcher of a node prints."""
    return (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        f"Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-27_{time}\n  host      : {host}\n"
        f"  rank      : {rank} (local_rank: 1)\n  exitcode  : {code} (pid: 123)\n"
    )


def failure_of(folder: Path, text: str, *endings: Signature) -> Failure:
    log = folder / "run.log"
    log.write_text(text)
    found = diagnose([log], endings=endings)
    assert found
    return found


@pytest.mark.parametrize(("first", "second"), [("", ""), ("0: ", "1: ")])
def test_the_process_that_failed_first_counts_although_its_launcher_reports_it_later(
    tmp_path: Path, first: str, second: str
) -> None:
    """The launcher of the first failed process waited for the other processes of its node."""
    reports = [(first, report(2, "n0", "05:00:40")), (second, report(11, "n1", "05:00:10", -9))]
    text = "".join(label + line for label, lines in reports for line in lines.splitlines(keepends=True))
    found = failure_of(tmp_path, text)
    assert (found.rank, found.host) == (11, "n1")
    assert "code -9 " in found.cause


def test_the_exception_of_the_process_that_failed_first_counts(tmp_path: Path) -> None:
    errors = "[rank2]: ValueError: no such shard\n[rank11]: KeyError: 7\n"
    found = failure_of(tmp_path, errors + report(2, "n0", "05:00:40") + report(11, "n1", "05:00:10"))
    assert (found.cause, found.rank, found.host) == ("a process failed with KeyError", 11, "n1")


def test_reports_count_in_the_order_of_the_log_if_one_has_no_time(tmp_path: Path) -> None:
    without = report(2, "n0", "05:00:40").replace("  time      : 2026-11-27_05:00:40\n", "")
    found = failure_of(tmp_path, without + report(11, "n1", "05:00:10"))
    assert (found.rank, found.host) == (2, "n0")


def test_a_killed_process_counts_more_than_the_later_timeout_of_another(tmp_path: Path) -> None:
    found = failure_of(tmp_path, report(11, "n1", "05:00:10", -9) + WATCHDOG + report(2, "n0", "05:10:11", -6))
    assert (found.rank, found.host) == (11, "n1")
    assert found.cause.startswith("unknown: a process exited with code -9 ")
    assert "ChildFailedError" not in found.evidence


def test_a_timeout_counts_more_than_the_later_report_of_its_process(tmp_path: Path) -> None:
    found = failure_of(tmp_path, WATCHDOG + report(2, "n0", "05:10:11", -6))
    assert (found.cause, found.rank, found.host) == ("a rank waited in vain for the other ranks", 2, "n0")


def test_the_message_of_a_scheduler_counts_more_than_an_earlier_report(tmp_path: Path) -> None:
    end = Signature(needle="JOB 7 CANCELLED DUE TO TIME LIMIT", cause="the job reached its time limit", primary=False)
    found = failure_of(tmp_path, report(11, "n1", "05:00:10", -15) + end.needle + "\n", end)
    assert found.cause == end.cause
