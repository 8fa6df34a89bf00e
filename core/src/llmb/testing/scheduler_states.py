"""Contract tests of poll(), on hosts that answer what a scheduler would print, or nothing."""

import itertools
from collections.abc import Iterator, Mapping
from typing import get_args

import attrs

from llmb.testing.plugin_checks import errors_fail_the_test, fail
from llmb.testing.scheduler_jobs import DIRECTORY, SchedulerJobs
from llmb.values.causes import Cause
from llmb.values.errors import LlmbError, TargetError, UnknownOutcomeError
from llmb.values.host import CommandResult
from llmb.values.job_status import JobHandle, JobState, JobStatus
from llmb.values.toml_files import read_toml

JOB_ID = "8"
HANDLE = JobHandle(id="contract", directory=DIRECTORY, job_id=JOB_ID)
WORDS = tuple(each for each in (*get_args(JobState), *get_args(Cause)) if each not in ("", "ended"))
"""The meanings that a state may have in states.toml."""


@attrs.frozen
class AnsweringHost:
    """A host without files, on which the commands have these results. After the last result they print nothing."""

    results: Iterator[TargetError | CommandResult]

    def run(self, script: str, *, timeout_s: float = 60.0) -> CommandResult:
        """Return the next result, or raise it if it is an error."""
        result = next(self.results, CommandResult(exit_code=0, stdout=""))
        if isinstance(result, TargetError):
            raise result
        return result

    def put(self, files: Mapping[str, str], *, mode: int = 0o644) -> None:
        """Raise the next result if it is an error."""
        self.run("")

    def read(self, offsets: Mapping[str, int]) -> Mapping[str, bytes]:
        """Raise the next result if it is an error. Return no file otherwise."""
        self.run("")
        return {}

    def peer(self, name: str) -> "AnsweringHost":
        """Return this host."""
        return self


SILENT_HOSTS: Mapping[str, TargetError | CommandResult] = {
    "the host cannot be reached": TargetError("cannot reach the host: connection refused"),
    "the connection is lost": UnknownOutcomeError("the connection was lost"),
    "the command fails": CommandResult(exit_code=1, stdout="", stderr="cannot contact the controller\n"),
}
"""Ways in which a host or its scheduler may not respond."""


class StateContract(SchedulerJobs):
    """Tests of poll(), which need no cluster."""

    def test_states_are_mapped(self) -> None:
        """poll() returns the meaning in states.toml of each of the scheduler's own states."""
        outputs, states = self._read_states()
        for name, meaning in states.items():
            results = [CommandResult(exit_code=0, stdout=_fill(text, name)) for text in outputs]
            try:
                found = self._status(AnsweringHost(iter(results)))
            except LlmbError as error:
                fail(f"poll() fails for a job in state {name}: {error}; map each name in states.toml to a JobStatus")
            if meaning != (found.cause if found.state == "ended" else found.state):
                is_what = f"{found.state} ({found.cause})" if found.cause else found.state
                fail(f"poll() returns {is_what} for a job in state {name}; states.toml has {meaning}")

    def _read_states(self) -> tuple[list[str], dict[str, str]]:
        """Return the texts that the commands of poll() print, and the meaning of each state."""
        file = self.folder / "states.toml"
        if not file.exists():
            fail(f"{file} is missing; list the scheduler's own states there, as docs/testing.md describes")
        with errors_fail_the_test():
            table = read_toml(file)
        outputs, states = table.get("output"), table.get("states")
        if not isinstance(outputs, list) or not isinstance(states, dict) or not states:
            fail("states.toml needs output, a list of texts, and the table [states]")
        for name, meaning in states.items():
            if meaning not in WORDS:
                fail(f"states.toml: {name}: invalid meaning {meaning!r}; expected one of {', '.join(WORDS)}")
        return outputs, states

    def _status(self, host: AnsweringHost) -> JobStatus:
        statuses: Mapping[str, JobStatus] = self.plugin.poll(handles=[HANDLE], host=host)
        return statuses[HANDLE.id]

    def test_absent_is_not_unreachable(self) -> None:
        """poll() raises TargetError if the host or the scheduler does not respond: the job may still run."""
        for what, result in SILENT_HOSTS.items():
            try:
                status = self._status(AnsweringHost(itertools.repeat(result)))
            except TargetError:
                continue
            except LlmbError as error:
                fail(f"if {what}, poll() fails: {error}; raise TargetError")
            fail(f"if {what}, poll() returns {status.state}; raise TargetError, because the job may still run")


def _fill(text: str, state: str) -> str:
    """Return an output of states.toml for a job in this state."""
    values = {"id": HANDLE.id, "directory": DIRECTORY, "job_id": JOB_ID, "state": state}
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
