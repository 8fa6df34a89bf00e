"""Order of the reports in which the launchers of several nodes name a failed process."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.failures.choose_cause import diagnose
from llmb.values.failure import Failure, Signature

WATCHDOG = "[rank2]:[E1127 05:10:09 ProcessGroupNCCL.cpp:629] Watchdog caught collective operation timeout: x\n"

TASK_EXITED = Signature(
    needle=": exited with 1",
    pattern=r"job: error: (?P<host>\w+): task (?P<task>\d+): exited with 1",
    cause="a task failed",
    primary=False,
    report=True,
)


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
    found = diagnose([log], [TASK_EXITED], endings=endings)
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


FRAMES = 'Traceback (most recent call last):\n  File "/opt/train.py", line 7, in <module>\n    main()\n'
LOST = {
    "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error": (
        "another process of the run died"
    ),
    "XlaRuntimeError: INTERNAL: NCCL operation ncclGroupEnd() failed: unhandled system error (run with it).": (
        "NCCL could not reach another process"
    ),
}


def labelled(rank: int, text: str) -> str:
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


@pytest.mark.parametrize("lost", LOST)
def test_the_exception_of_the_first_process_may_be_below_the_messages_of_others(tmp_path: Path, lost: str) -> None:
    text = labelled(1, FRAMES + lost) + labelled(3, f"{FRAMES}ValueError: bad batch")
    found = failure_of(tmp_path, text + report(3, "n0", "05:00:10"))
    assert (found.cause, found.rank, found.host) == ("a process failed with ValueError", 3, "n0")

    found = failure_of(tmp_path, text + report(1, "n0", "05:00:10"))
    assert (found.cause, found.rank) == (LOST[lost], 1)

    text = labelled(1, FRAMES + lost) + labelled(3, f"{FRAMES}RuntimeError: CUDA error: CUBLAS_STATUS_INTERNAL_ERROR")
    found = failure_of(tmp_path, text + report(3, "n0", "05:00:10"))
    assert (found.cause, found.rank) == ("a GPU library failed", 3)


def test_a_report_without_a_time_counts_after_those_with_one(tmp_path: Path) -> None:
    without = report(2, "n0", "05:00:40").replace("  time      : 2026-11-27_05:00:40\n", "")
    found = failure_of(tmp_path, without + report(11, "n1", "05:00:10"))
    assert (found.rank, found.host) == (11, "n1")


def test_a_killed_process_counts_more_than_the_later_timeout_of_another(tmp_path: Path) -> None:
    found = failure_of(tmp_path, report(11, "n1", "05:00:10", -9) + WATCHDOG + report(2, "n0", "05:10:11", -6))
    assert (found.rank, found.host) == (11, "n1")
    assert found.cause.startswith("unknown: a process exited with code -9 ")
    assert "ChildFailedError" not in found.evidence


def test_a_killed_process_counts_although_it_is_reported_below_the_timeout_or_in_another_log(tmp_path: Path) -> None:
    killed = report(11, "n1", "05:00:10", -9)
    found = failure_of(tmp_path, WATCHDOG + report(2, "n0", "05:10:11", -6) + killed)
    assert (found.rank, found.host) == (11, "n1")
    logs = [tmp_path / "n0.log", tmp_path / "n1.log"]
    logs[0].write_text(WATCHDOG)
    logs[1].write_text(killed)
    other = diagnose(logs)
    assert other
    assert other.cause.startswith("unknown: a process exited with code -9 ")


def test_a_timeout_counts_more_than_the_later_report_of_its_process(tmp_path: Path) -> None:
    found = failure_of(tmp_path, WATCHDOG + report(2, "n0", "05:10:11", -6))
    assert (found.cause, found.rank, found.host) == ("a rank waited in vain for the other ranks", 2, "n0")
    found = failure_of(tmp_path, WATCHDOG + report(4, "n1", "05:10:08", -6) + report(2, "n0", "05:10:11", -6))
    assert found.cause == "a rank waited in vain for the other ranks"


def test_the_message_of_a_scheduler_counts_more_than_an_earlier_report(tmp_path: Path) -> None:
    end = Signature(needle="JOB 7 CANCELLED DUE TO TIME LIMIT", cause="the job reached its time limit", primary=False)
    found = failure_of(tmp_path, report(11, "n1", "05:00:10", -15) + end.needle + "\n", end)
    assert found.cause == end.cause


def test_a_task_that_is_a_launcher_is_no_rank(tmp_path: Path) -> None:
    """The scheduler numbers the launchers of the nodes."""
    text = "[rank5]: KeyError: 7\n" + report(4, "n0", "05:00:10") + "job: error: n5: task 5: exited with 1\n"
    found = failure_of(tmp_path, text)
    assert (found.cause, found.rank, found.host) == ("a process failed with KeyError", 5, None)


def test_the_first_exception_of_a_task_with_several_ranks_counts(tmp_path: Path) -> None:
    """The report of the launcher is missing, as if the scheduler cut its first line."""
    errors = "1: [rank7]: KeyError: 7\n1: [rank1]: ValueError: 3\n1: [rank5]: ValueError: 3\n"
    found = failure_of(tmp_path, f"{errors}job: error: n1: task 1: exited with 1\n")
    assert (found.cause, found.rank, found.host) == ("a process failed with KeyError", 7, "n1")


def test_the_host_of_a_task_is_that_of_each_of_its_ranks(tmp_path: Path) -> None:
    end = "".join(f"1: {line}\n" for line in report(4, "n1.x", "05:00:10").splitlines())
    error = "1: [rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    found = failure_of(tmp_path, error + end)
    assert (found.cause, found.rank, found.host) == ("the accelerator is out of memory", 5, "n1.x")


def test_a_task_that_is_no_launcher_is_a_rank(tmp_path: Path) -> None:
    found = failure_of(tmp_path, "[rank5]: IndexError\n[rank1]: KeyError: 7\njob: error: n1: task 1: exited with 1\n")
    assert (found.cause, found.rank, found.host) == ("a process failed with KeyError", 1, "n1")


def test_the_rank_in_a_report_is_no_task(tmp_path: Path) -> None:
    errors = "0: [rank2]: KeyError: 7\n0: [rank0]: KeyError: 8\n"
    end = "".join(f"0: {line}\n" for line in report(0, "n0", "05:00:10").splitlines())
    found = failure_of(tmp_path, errors + end + "job: error: n0: task 0: exited with 1\n")
    assert (found.evidence, found.rank, found.host) == ("0: [rank0]: KeyError: 8", 0, "n0")


def test_a_process_on_a_node_is_the_only_reported_one(tmp_path: Path) -> None:
    end = "".join(f"0: {line}\n" for line in report(1, "n0", "05:00:10").splitlines())
    found = failure_of(tmp_path, "0: [default1]:KeyError: 7\n" + end + "job: error: n0: task 0: exited with 1\n")
    assert (found.rank, found.host) == (1, "n0")


@pytest.mark.parametrize("host", ["localhost", "localhost.localdomain"])
def test_a_launcher_that_does_not_know_its_host_names_none(tmp_path: Path, host: str) -> None:
    assert failure_of(tmp_path, report(3, host, "05:00:10")).host is None
