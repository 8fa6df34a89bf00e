"""The truth table: in which state a run truly ended.

Neither an exit status nor a log is believed alone. Where a scheduler says no more than that a job failed, that its
end is not known, or that it completed although steps are missing, its own words in the job's log tell the cause: a time
limit, a preemption, a node's failure, too little memory, a cancellation.

| the job ended        | all steps | loss NaN | state     |
|----------------------|-----------|----------|-----------|
| cancelled            | yes or no | any      | cancelled |
| any other            | yes or no | yes      | failed    |
| completed            | yes       | no       | completed |
| completed            | no        | no       | failed    |
| timeout              | yes       | no       | completed |
| timeout              | no        | no       | timeout   |
| lost                 | yes or no | no       | lost      |
| failed, and the rest | yes or no | no       | failed    |
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from llmb.values.job_status import Cause, RunState
from llmb.values.steps import NoticeKind

IN_ITS_OWN_WORDS: Mapping[NoticeKind, Cause] = {
    "time limit": "timeout",
    "preempted": "preempted",
    "node failure": "node failure",
    "out of memory": "out of memory",
    "cancelled": "cancelled",
}
"""What a scheduler writes into a job's log, the first that is found counting before those behind it."""

REMEDIES: Mapping[Cause, str] = {
    "timeout": "raise workload.time_limit, or run fewer steps",
    "out of memory": "ask for more memory, or need less: a smaller micro batch, or more GPUs to a model (tp, pp, fsdp)",
    "preempted": "run it again, where others have no precedence",
    "node failure": "run it again; if it comes back, leave out that node",
    "deadline": "run it again with a later deadline, or a shorter time limit",
}

READ_AGAIN = "mend the plugin, and `llmb parse` the log in the run's record; nothing of it is lost"

NEVER_BEGAN: Mapping[Cause, str] = {
    "refused": "",
    "impossible": "it would never have started: ",
    "dependency": "it would never have started: ",
}
"""Causes of a job that the scheduler did not take, or would not start, and how to begin saying so."""


@attrs.frozen(kw_only=True)
class Evidence:
    """What is known of a run that ended: the scheduler's word, the steps seen, and whether the loss was NaN.

    ``unread`` is why its logs were read no further, where a parser failed: there may have been more steps.
    """

    cause: Cause
    exit_code: int | None
    reason: str
    steps_done: int
    steps_asked: int
    nan: bool
    remedy: str = ""
    messages: frozenset[NoticeKind] = frozenset()
    unread: str = ""

    @property
    def all_steps(self) -> bool:
        """Whether every step that was asked for was seen."""
        return self.steps_done >= self.steps_asked


@attrs.frozen(kw_only=True)
class Outcome:
    """The state, one sentence of why where it is not plainly completed, and what to do about it."""

    state: RunState
    reason: str = ""
    remedy: str = ""
    look_in_logs: bool = False


def decide(evidence: Evidence) -> Outcome:
    """The row of the truth table that this evidence falls into."""
    evidence = attrs.evolve(evidence, cause=_true_cause(evidence))
    outcome = _row(evidence)
    if evidence.unread and evidence.cause != "completed" and outcome.state not in ("completed", "cancelled"):
        outcome = attrs.evolve(outcome, reason=f"{outcome.reason}; {evidence.unread}")
    return attrs.evolve(outcome, remedy=evidence.remedy) if evidence.remedy and outcome.remedy else outcome


def _true_cause(evidence: Evidence) -> Cause:
    """The scheduler's word; where it says too little, what it wrote into the job's log."""
    cause = evidence.cause
    if cause in ("failed", "lost") or (cause == "completed" and not evidence.all_steps):
        return next((IN_ITS_OWN_WORDS[kind] for kind in IN_ITS_OWN_WORDS if kind in evidence.messages), cause)
    return cause


def _row(evidence: Evidence) -> Outcome:
    done = f"{evidence.steps_done} of {evidence.steps_asked} steps"
    if evidence.cause == "cancelled":
        return Outcome(state="cancelled", reason=f"cancelled after {done}")
    if evidence.nan:
        return Outcome(
            state="failed",
            reason=f"the loss was NaN ({done} done)",
            remedy="check dtype, learning rate and data; a run that diverges measures nothing",
        )
    if evidence.cause == "completed" and evidence.all_steps:
        return Outcome(state="completed")
    if evidence.cause == "completed":
        return _too_few_steps(evidence, done)
    if evidence.cause == "timeout" and evidence.all_steps:
        return Outcome(state="completed", reason=f"all {done} were done, then it hung until its time limit")
    if evidence.cause == "timeout":
        return Outcome(
            state="timeout",
            reason=f"the time limit came after {done}",
            remedy=REMEDIES["timeout"],
        )
    if evidence.cause == "lost":
        return Outcome(
            state="lost",
            reason=f"{evidence.reason or 'its end is not known'} ({done} done)",
            remedy="run it again with `llmb run` on its run.toml",
        )
    if evidence.cause in NEVER_BEGAN:  # no log tells more
        return Outcome(
            state="failed",
            reason=NEVER_BEGAN[evidence.cause] + (evidence.reason or evidence.cause),
            remedy="correct [target]",
        )
    remedy = REMEDIES.get(evidence.cause, "see the end of the log")
    return Outcome(state="failed", reason=_told(evidence, done), look_in_logs=True, remedy=remedy)


def _too_few_steps(evidence: Evidence, done: str) -> Outcome:
    if evidence.unread:
        return Outcome(state="failed", reason=f"{evidence.unread} ({done} read)", remedy=READ_AGAIN)
    return Outcome(
        state="failed",
        reason=f"it ended without an error after {done}",
        look_in_logs=True,
        remedy="see the end of the log: the framework stopped early, or printed no step times",
    )


def _told(evidence: Evidence, done: str) -> str:
    parts = [evidence.cause if evidence.cause != "failed" else "", evidence.reason]
    told = ": ".join(part for part in parts if part)
    if not told:
        told = f"exit code {evidence.exit_code}" if evidence.exit_code is not None else "it failed"
    return f"{told} (after {done})"
