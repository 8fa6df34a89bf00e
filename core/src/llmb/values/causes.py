"""Causes for which a job ends: the words of schedulers and their log messages, with what llmb prints for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

Cause = Literal[
    "",
    "completed",
    "failed",
    "cancelled",
    "timeout",
    "lost",
    "out of memory",
    "preempted",
    "node failure",
    "launch failure",
    "dependency",
    "deadline",
    "impossible",
    "refused",
]


@attrs.frozen(kw_only=True)
class CauseEntry:
    """Texts for a cause, and the state of a run that ends for this cause.

    ``prefix`` precedes the scheduler's reason. ``is_crash`` is True if a process of the job failed. ``search_logs`` is
    True if the logs may contain a more precise cause.
    """

    text: str
    remedy: str = "see the end of the log"
    state: Literal["failed", "cancelled", "timeout", "lost"] = "failed"
    prefix: str = ""
    is_crash: bool = False
    search_logs: bool = False


CAUSES: Mapping[Cause, CauseEntry] = {
    "timeout": CauseEntry(
        text="the job's time limit came",
        remedy="raise workload.time_limit, or run fewer steps",
        state="timeout",
    ),
    "preempted": CauseEntry(
        text="the scheduler took the job's nodes for another one",
        remedy="run it again where jobs are not preempted",
        search_logs=True,
    ),
    "node failure": CauseEntry(
        text="a node of the job failed",
        remedy="run it again; if it fails again, exclude that node",
        search_logs=True,
    ),
    "out of memory": CauseEntry(
        text="the host is out of memory",
        remedy="request more memory, or use less: a smaller micro batch, or more GPUs per model (tp, pp, fsdp)",
        is_crash=True,
        search_logs=True,
    ),
    "cancelled": CauseEntry(text="the job was cancelled", remedy="run it again", state="cancelled"),
    "deadline": CauseEntry(
        text="the job's deadline passed",
        remedy="run it again with a later deadline, or a shorter time limit",
        search_logs=True,
    ),
    "launch failure": CauseEntry(text="the scheduler could not launch the job", search_logs=True),
    "refused": CauseEntry(text="the scheduler rejected the job", remedy="correct [target]"),
    "impossible": CauseEntry(
        text="the scheduler can never start the job",
        remedy="correct [target]",
        prefix="it would never have started: ",
    ),
    "dependency": CauseEntry(
        text="the job waits for a job that cannot end as required",
        remedy="correct [target]",
        prefix="it would never have started: ",
    ),
    "lost": CauseEntry(
        text="the end of the job is unknown",
        remedy="run it again with `llmb run` on its run.toml",
        state="lost",
    ),
    "failed": CauseEntry(text="the job failed", is_crash=True, search_logs=True),
}
"""All causes of an unsuccessful end. If messages in the logs name several causes, the first one here counts."""
