"""Parsers of Slurm's messages in the logs of a job: why Slurm ended a job or a step."""

import re
from collections.abc import Iterable

from llmb import LineParser, Notice, NoticeKind, Step

ATTEMPT = b"llmb: attempt "
"""The first line of each attempt. Messages before it in Slurm's log belong to an earlier attempt."""

MEANINGS: tuple[tuple[bytes, NoticeKind], ...] = (
    (b"DUE TO TIME LIMIT", "timeout"),
    (b"has exceeded its time limit and its allocation has been revoked", "timeout"),
    (b"DUE TO PREEMPTION", "preempted"),
    (b"DUE TO NODE ", "node failure"),
    (b"error: Node failure on ", "node failure"),
    (b"oom-kill event", "out of memory"),
    (b"oom_kill event", "out of memory"),
    (b": Out Of Memory", "out of memory"),
    (b"xceeded memory limit", "out of memory"),
    (b"xceeded job memory limit", "out of memory"),
)
CANCELLED = b"CANCELLED AT"
REQUEUED = b"DUE TO JOB REQUEUE"
TASK_ENDED = b": task"
_BY_SIGNAL = rb"CANCELLED AT \S+ (?:DUE to SIGNAL [\w ]+ )?\*\*\*"
_STEP_CANCELLED = re.compile(rb"\*\*\* STEP \S+ ON \S+ " + _BY_SIGNAL)
_TASK_FAILED = re.compile(rb"srun: error: [^:]+: tasks? [\d,-]+: (?!Terminated)")
_JOB_CANCELLED = re.compile(rb"\*\*\* JOB \d+ ON \S+ " + _BY_SIGNAL)  # not a step, of which a rank may fail


class SlurmMessages(LineParser):
    """Parser for the logs of llmb's own jobs.

    Reports its findings when it is closed, because a new attempt discards the messages of the previous one.
    """

    needles = (ATTEMPT, CANCELLED, *(text for text, _ in MEANINGS))

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[str, list[Notice]] = {}

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        """Record the meaning of a line. Return nothing until `close`."""
        if ATTEMPT in line:
            self._found[self.source] = []
        kind = next((kind for text, kind in MEANINGS if text in line), None)
        if kind is None and _JOB_CANCELLED.search(line):
            kind = "cancelled"
        if kind is not None:
            self._keep(kind, line)
        return ()

    def _keep(self, kind: NoticeKind, line: bytes) -> None:
        text = line.decode(errors="replace").strip()
        self._found.setdefault(self.source, []).append(Notice(kind=kind, text=text))

    def close(self) -> list[Step | Notice]:
        """Return Slurm's messages about the last attempt."""
        super().close()
        return [notice for found in self._found.values() for notice in found]


class ForeignSlurmMessages(SlurmMessages):
    """Parser for the log of a job without a record.

    There, a requeue explains the end of the log. So does a cancelled step, but if a rank failed before, srun cancelled
    the step because of it. The signatures of this plugin name the rank.
    """

    needles = (*SlurmMessages.needles, TASK_ENDED)

    def __init__(self) -> None:
        super().__init__()
        self._failed = False

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        """Record the meaning of a line. Return nothing until `close`."""
        if REQUEUED in line:
            self._keep("preempted", line)
        elif _TASK_FAILED.search(line):
            self._failed = True
        elif _STEP_CANCELLED.search(line) and not self._failed:
            self._keep("cancelled", line)
        return super().read_line(line)
