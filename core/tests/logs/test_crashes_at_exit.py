"""Crashes of processes that exit: after an exception, after a timeout, or because the scheduler ends them."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.failures.choose_cause import diagnose
from llmb.values.failure import Failure, Signature

TIME_LIMIT = Signature(needle="DUE TO TIME LIMIT", cause="the time limit", primary=False)
CANCELLED = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-22T12:00:00 DUE TO TIME LIMIT ***"
UNCAUGHT = 'Traceback (most recent call last):\n  File "/opt/train.py", line 7, in <module>\n    main()\n'
CAUGHT = 'Traceback (most recent call last):\n  File "/opt/hub.py", line 9, in fetch\n    get(url)\n'
PEER = f"{UNCAUGHT}torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"
WATCHDOG = "[E1122 12:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: Work"
CRASHES = {
    "Fatal Python error: Segmentation fault": "a process crashed (segmentation fault)",
    "[n1:77 :0:77] Caught signal 11 (Segmentation fault: address not mapped)": "a process crashed (segmentation fault)",
    "Fatal Python error: Bus error": "a process crashed (bus error)",
}


def labelled(rank: int, text: str) -> str:
    return "".join(f"{rank}: {line}\n" for line in text.splitlines())


def diagnosed(path: Path, text: str) -> Failure:
    path.write_text(text)
    found = diagnose([path], endings=[TIME_LIMIT])
    assert found
    return found


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("of_rank", [0, 3])
def test_an_uncaught_exception_is_the_cause_of_a_later_crash(tmp_path: Path, crash: str, of_rank: int) -> None:
    text = labelled(3, f"{UNCAUGHT}ValueError: bad batch") + labelled(of_rank, crash)
    found = diagnosed(tmp_path / "run.log", text)
    assert (found.cause, found.rank, found.line) == ("a process failed with ValueError", 3, 4)


@pytest.mark.parametrize("crash", CRASHES)
def test_the_signature_of_the_exception_names_the_cause(tmp_path: Path, crash: str) -> None:
    error = "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(handle)`"
    found = diagnosed(tmp_path / "run.log", labelled(3, f"{UNCAUGHT}{error}\n{crash}"))
    assert (found.cause, found.rank) == ("a GPU library failed", 3)


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize(
    ("before", "cause"),
    [(CANCELLED, "the time limit"), (labelled(1, WATCHDOG), "a rank waited in vain for the other ranks")],
)
def test_what_ends_processes_is_the_cause_of_their_crashes(tmp_path: Path, before: str, cause: str, crash: str) -> None:
    found = diagnosed(tmp_path / "run.log", f"{before}\n{labelled(0, crash)}")
    assert (found.cause, found.line) == (cause, 1)


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize(
    "before",
    [
        f"{CAUGHT}KeyError: 'config'\nloading\n",  # which the process logged and survived
        f"{UNCAUGHT}KeyError: 'config'\n" + ("loading " * 15 + "\n") * 180,  # of a program before the training
        labelled(1, PEER),
        f"{CANCELLED}\nsrun: 2026-11-22T15:00:00 starting again\n",
        f"{CANCELLED}\n" + "starting again\n" * 2000,
    ],
    ids=["caught", "before the training", "of a peer", "of an earlier attempt", "far above"],
)
def test_a_crash_is_the_cause_of_what_does_not_explain_it(tmp_path: Path, before: str, crash: str) -> None:
    time = "2026-11-22T15:00:01 " if "15:00" in before else ""
    found = diagnosed(tmp_path / "run.log", before + labelled(0, time + crash))
    assert (found.cause, found.rank) == (CRASHES[crash], 0)


SIGNALS = {-11: ("SIGSEGV", "segmentation fault"), -7: ("SIGBUS", "bus error")}


def entry(rank: int, code: int) -> str:
    traceback = f"Signal {-code} ({SIGNALS[code][0]}) received by PID {rank + 90}" if code < 0 else "<N/A>"
    return (
        f"  time      : 2026-11-22_10:00:00\n  host      : n1\n  rank      : {rank} (local_rank: {rank})\n"
        f"  exitcode  : {code} (pid: {rank + 90})\n  error_file: <N/A>\n  traceback : {traceback}\n"
    )


def table(others: str, root: str) -> str:
    """Return the table of torchrun about processes that failed."""
    rules = "=" * 60, "-" * 60
    parts = (rules[0], "train.py FAILED", rules[1], "Failures:", f"[1]:\n{others}{rules[1]}")
    begin = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    return begin + "\n".join((*parts, "Root Cause (first observed failure):", f"[0]:\n{root}{rules[0]}\n"))


@pytest.mark.parametrize("code", SIGNALS)
def test_a_crash_after_the_first_failure_of_a_table_is_not_the_cause(tmp_path: Path, code: int) -> None:
    found = diagnosed(tmp_path / "run.log", table(entry(0, code), entry(3, 1)))
    assert (found.cause, found.rank) == ("unknown: a process exited with code 1", 3)


@pytest.mark.parametrize("code", SIGNALS)
def test_the_crash_that_a_table_reports_first_is_the_cause(tmp_path: Path, code: int) -> None:
    first = table(entry(0, 1), entry(3, code))
    found = diagnosed(tmp_path / "run.log", first)
    assert (found.cause, found.rank) == (f"a process crashed ({SIGNALS[code][1]})", 3)

    of_next_node = table(entry(8, 1), entry(11, 1))
    assert diagnosed(tmp_path / "run.log", first + of_next_node).cause == found.cause


@pytest.mark.parametrize("signal", ["SignalException: Process 12 got signal: 15", "KeyboardInterrupt"])
def test_the_message_of_the_scheduler_is_its_own_evidence(tmp_path: Path, signal: str) -> None:
    found = diagnosed(tmp_path / "run.log", f"{labelled(3, UNCAUGHT + signal)}{CANCELLED}\n")
    assert (found.cause, found.rank, found.evidence) == ("the time limit", None, CANCELLED)
