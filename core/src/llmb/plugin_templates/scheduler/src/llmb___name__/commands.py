"""Submission, status and cancellation of jobs: one command on the host for all jobs."""

import shlex
from collections.abc import Mapping, Sequence

from llmb import Cause, Host, JobHandle, JobState, JobStatus, Script, TargetError, UnknownOutcomeError, resource_text

STATES: Mapping[str, tuple[JobState, Cause]] = {
    "ABSENT": ("absent", ""),
    "RUNNING": ("running", ""),
    "DONE": ("ended", "completed"),
    "FAILED": ("ended", "failed"),
    "CANCELLED": ("ended", "cancelled"),
    "TIMEOUT": ("ended", "timeout"),
    "LOST": ("ended", "lost"),
}
"""The scheduler's names of states. tests/states.toml lists them too."""


def submit_jobs(scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
    """Submit jobs, and return a handle for each. Raise UnknownOutcomeError if a job may have been submitted."""
    host.put({f"{script.directory}/job.sh": script.text for script in scripts})
    host.put({path: text for script in scripts for path, text in script.files.items()})
    calls = [["submit", script.directory, "again" if script.check else ""] for script in scripts]
    _run(host, calls, UnknownOutcomeError)
    return {script.id: JobHandle(id=script.id, directory=script.directory) for script in scripts}


def poll_jobs(handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
    """Return the status of each job. Raise TargetError if the host cannot be reached."""
    lines = _run(host, [["poll", handle.id, handle.directory] for handle in handles]).splitlines()
    return dict(map(_status, lines))


def _status(line: str) -> tuple[str, JobStatus]:
    identity, name, code, reason = line.split("\t", 3)
    state, cause = STATES[name]
    return identity, JobStatus(state=state, cause=cause, exit_code=int(code) if code else None, reason=reason)


def cancel_jobs(handles: Sequence[JobHandle], host: Host) -> None:
    """Cancel jobs. Raise TargetError if the host cannot be reached."""
    _run(host, [["cancel", handle.directory] for handle in handles])


def _run(host: Host, calls: Sequence[Sequence[str]], error: type[TargetError] = TargetError) -> str:
    """Run functions of commands.sh on the host, and return their output. Raise the error if one fails."""
    functions = resource_text("llmb___name__", "commands.sh")
    result = host.run("\n".join([functions, *(f"{shlex.join(call)} || exit 1" for call in calls)]))
    if result.exit_code:
        raise error(f"cannot start or query jobs: {result.stderr.strip() or f'exit code {result.exit_code}'}")
    return result.stdout
