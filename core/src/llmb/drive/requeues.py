"""Notes on jobs that the scheduler ended and started again."""

from collections.abc import Iterable, Mapping

from llmb.drive.effects import EffectRunner
from llmb.state_machine.observations import UnitObservation
from llmb.values.job_status import JobStatus

MAX_READS = 100
"""Reads of the logs of an attempt that is over. A log that all attempts share may grow all the time."""

ENDS: Mapping[str, str] = {
    "preempted": "attempt {attempt} was preempted; ",
    "node failure": "a node of attempt {attempt} failed; ",
}
"""Beginnings of the note, by the cause that the scheduler wrote into the log of the attempt that ended."""


def note_requeues(runner: EffectRunner, polled: Iterable[UnitObservation]) -> None:
    """Add a note for each run whose job has a new attempt, after copying the logs of the attempt before.

    Call this before ``polled`` changes the states. Raise TargetError.
    """
    attempts = {
        unit.id: seen.attempt
        for unit, seen in polled
        if unit.kind == "run" and isinstance(seen, JobStatus) and seen.state in ("pending", "running")
        if seen.attempt > runner.units.states[unit.id].attempt
    }
    failed = runner.log_follower.read_to_end(attempts, most_reads=MAX_READS)
    for run_id, attempt in attempts.items():
        logs = runner.units.runs[run_id].logs
        cause = "" if run_id in failed else logs.find_scheduler_cause()  # the next read reports the error
        end = ENDS.get(cause, "").format(attempt=runner.units.states[run_id].attempt)
        runner.notes.append(f"{run_id}: {end}the scheduler requeued the job, and llmb follows attempt {attempt}")
