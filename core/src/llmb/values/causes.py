"""Causes for which a job ends: the words of schedulers and their log messages, with what llmb prints for each."""

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
    "directory lost",
    "dependency",
    "deadline",
    "impossible",
    "refused",
]

CORRECT_TARGET = "correct [target]; `llmb doctor SPEC` checks it"


@attrs.frozen
class CauseEntry:
    """Texts for a cause, and the state of a run that ends for this cause.

    ``origin`` is who can fix the cause, None if that is unknown. ``prefix`` precedes the scheduler's reason.
    ``is_crash`` is True if a process of the job failed. ``search_logs`` is True if the logs may contain a more precise
    cause.
    """

    text: str
    remedy: str = "see the end of the log: `llmb logs RUN`"
    state: Literal["failed", "cancelled", "timeout", "lost"] = "failed"
    origin: Literal["infrastructure", "user"] | None = None
    prefix: str = ""
    is_crash: bool = False
    search_logs: bool = False


CAUSES: Mapping[Cause, CauseEntry] = {
    "timeout": CauseEntry(
        "the job reached its time limit",
        "raise the limit (`llmb run SPEC --set workload.time_limit=LONGER`), or run fewer steps",
        state="timeout",
        origin="user",
    ),
    "preempted": CauseEntry(
        "the scheduler took the job's nodes for another one",
        "run it again where jobs are not preempted: `llmb run SPEC`",
        search_logs=True,
        origin="infrastructure",
    ),
    "node failure": CauseEntry(
        "a node of the job failed",
        "run it again (`llmb run SPEC`); if it fails again, exclude that node",
        search_logs=True,
        origin="infrastructure",
    ),
    "out of memory": CauseEntry(
        "the host is out of memory",
        "use fewer data loader workers, or nodes with more memory, which `free -h` prints; if the scheduler limits the "
        "memory, raise the limit: `llmb run SPEC --set target.mem=SIZE`",
        is_crash=True,
        search_logs=True,
        origin="user",
    ),
    "cancelled": CauseEntry("the job was cancelled", "run it again: `llmb run SPEC`", state="cancelled"),
    "deadline": CauseEntry(
        "the job's deadline passed",
        "run it again with a later deadline, or a shorter time limit: `llmb run SPEC --set workload.time_limit=LIMIT`",
        search_logs=True,
        origin="user",
    ),
    "launch failure": CauseEntry("the scheduler could not launch the job", search_logs=True, origin="infrastructure"),
    "directory lost": CauseEntry(
        "the job's directory disappeared",
        "check that target.workdir stays mounted on all nodes and that nothing cleans it up, then run it again: "
        "`llmb run SPEC`",
        is_crash=True,
        origin="infrastructure",
    ),
    "refused": CauseEntry("the scheduler rejected the job", CORRECT_TARGET, origin="user"),
    "impossible": CauseEntry(
        "the scheduler can never start the job",
        CORRECT_TARGET,
        prefix="it would never have started: ",
        origin="user",
    ),
    "dependency": CauseEntry(
        "the job waits for a job that cannot end as required",
        CORRECT_TARGET,
        prefix="it would never have started: ",
        origin="user",
    ),
    "lost": CauseEntry("the end of the job is unknown", "run it again: `llmb run SPEC`", state="lost"),
    "failed": CauseEntry("the job failed", is_crash=True, search_logs=True),
}
"""All causes of an unsuccessful end. If messages in the logs name several causes, the first one here counts."""
