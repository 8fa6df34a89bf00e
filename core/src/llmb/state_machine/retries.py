"""The rule that decides whether the job of a shared task is submitted again."""

from llmb.state_machine.states import State
from llmb.values.job_status import JobStatus

MAX_RETRIES = 2
"""How often a task is submitted again after its job was killed by something else."""

RETRYABLE = frozenset({"lost", "preempted", "node failure", "cancelled"})
"""Causes for which the task itself is not to blame."""


def may_retry(status: JobStatus, state: State) -> bool:
    """Check whether a task whose job ended without completing it is submitted again."""
    return status.cause in RETRYABLE and state.retries < MAX_RETRIES
