"""Slurm's messages in the logs of a job."""

from __future__ import annotations

import pytest

from llmb import Notice
from llmb_slurm.log_messages import SlurmMessages

STAMP = b"2026-11-21T06:57:14"


def kinds(*blocks: tuple[str, bytes]) -> list[str]:
    parser = SlurmMessages()
    for source, data in blocks:
        assert parser.feed(data, source) == []  # a new attempt would discard it
    return [notice.kind for notice in parser.close() if isinstance(notice, Notice)]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"slurmstepd-node1: error: *** JOB 95 ON node1 CANCELLED AT %s DUE TO TIME LIMIT ***" % STAMP, "timeout"),
        (b"slurmstepd: error: *** STEP 95.1 ON node1 CANCELLED AT %s DUE TO TIME LIMIT ***" % STAMP, "timeout"),
        (b"slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT %s\n DUE TO TIME LIMIT ***" % STAMP, "timeout"),
        (b" 40%%|##  | 4/10 [00:01slurmstepd: error: *** JOB 5 ON a CANCELLED AT %s DUE TO PREEMPTION ***" % STAMP,
         "preempted"),
        (b"slurmstepd: error: *** JOB 1 ON a CANCELLED AT %s DUE TO NODE FAILURE, SEE SLURMCTLD LOG" % STAMP,
         "node failure"),
        (b"slurmstepd-node1: error: Detected 1 oom-kill event(s) in StepId=5.0. Some of your", "out of memory"),
        (b"slurmstepd-node1: error: Detected 2 oom_kill events in StepId=5.0. Some of the", "out of memory"),
        (b"srun: error: node1: task 0: Out Of Memory", "out of memory"),
        (b"srun: error: Node failure on node7", "node failure"),
        (b"slurmstepd: error: *** JOB 55 ON node1 CANCELLED AT %s ***" % STAMP, "cancelled"),
    ],
)  # fmt: skip
def test_a_message_has_a_kind(line: bytes, kind: str) -> None:
    assert kinds(("slurm.log", line + b"\n")) == [kind]


@pytest.mark.parametrize(
    "line",
    [
        b"slurmstepd: error: *** STEP 55.1 ON node1 CANCELLED AT %s ***" % STAMP,  # after a failed rank
        b"slurmstepd: error: *** JOB 56 ON node1 CANCELLED AT %s DUE TO JOB REQUEUE ***" % STAMP,
        b"srun: error: node1: task 0: Exited with exit code 3",
    ],
)
def test_a_line_that_does_not_explain_the_end(line: bytes) -> None:
    assert kinds(("slurm.log", line + b"\n")) == []


def test_messages_of_an_earlier_attempt_are_discarded() -> None:
    preempted = b"slurmstepd: error: *** JOB 5 ON a CANCELLED AT %s DUE TO PREEMPTION ***\n" % STAMP
    again = b"llmb: attempt 1 of job 5 on node1\n"
    oom = b"3: slurmstepd: error: Detected 1 oom-kill event(s)\n"
    assert kinds(("slurm.log", preempted + again)) == []
    assert kinds(("train.1.log", oom), ("slurm.log", preempted + again)) == ["out of memory"]
