"""Jobs of a scheduler on a real host, for its contract tests."""

import contextlib
import os
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar, cast
from unittest.mock import patch

import attrs

from llmb.drive.secrets import SecretFiles
from llmb.testing.plugin_checks import errors_fail_the_test, fail
from llmb.testing.scheduler_jobs import TASKS_PER_NODE, SchedulerJobs
from llmb.values.causes import Cause
from llmb.values.errors import LlmbError
from llmb.values.frozen import FrozenMap
from llmb.values.host import CommandResult, Host
from llmb.values.job import Job, Phase, Script
from llmb.values.job_history import JobHistory
from llmb.values.job_status import JobHandle, JobStatus

T = TypeVar("T")

AWAIT_GATE = 'for ((tenth = 0; tenth < 3000; tenth++)); do [ -e "$1/gate" ] && exit 0 || sleep 0.1; done; exit 1'
"""Bash that waits for `LiveJobs.open_gate` of the job with the directory $1."""

KILLED_S = 30
"""How long a killed process may still hold its locks."""


@attrs.frozen
class SimultaneousHost:
    """A host on which two threads start each command at the same time."""

    host: Host
    barrier: threading.Barrier

    def run(self, script: str, *, timeout_s: float = 60.0) -> CommandResult:
        """Run a script once the other thread runs one too, or soon after."""
        with contextlib.suppress(threading.BrokenBarrierError):
            self.barrier.wait(timeout=5)
        return self.host.run(script, timeout_s=timeout_s)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.host, name)


class LiveJobs:
    """The jobs of one test. ``workdir`` is a new folder on the host."""

    def __init__(self, contract: SchedulerJobs, host: Host, workdir: str, deadline_s: float) -> None:
        self.host = host
        self.workdir = workdir
        self._contract = contract
        self._deadline_s = deadline_s
        self._scripts: dict[str, Script] = {}
        self._statuses: dict[str, JobStatus] = {}

    def job(self, name: str, scripts: Mapping[str, str], *, workdir: str = "", **changes: Any) -> Job:
        """Return a job with one phase for each bash script. The argument of the scripts is the job's directory."""
        directory = f"{workdir or self.workdir}/runs/contract-{name}"
        files = {f"{directory}/{phase}.sh": text for phase, text in scripts.items()}
        phases = [Phase(name=phase, command=("bash", f"{directory}/{phase}.sh", directory)) for phase in scripts]
        job = Job(
            id=f"contract-{name}",
            directory=directory,
            phases=tuple(phases),
            nodes=1,
            tasks_per_node=1,
            gpus_per_node=0,
            time_limit_s=600,
            files=FrozenMap(files),
        )
        return attrs.evolve(job, **changes)

    @property
    def ranks(self) -> dict[str, Any]:
        """The keys of a job with several ranks on several nodes, or on one if the scheduler has only one."""
        return {"nodes": 1 if self._contract.plugin.single_node else 2, "tasks_per_node": TASKS_PER_NODE}

    def submit(self, *jobs: Job, secrets: Mapping[str, str] = FrozenMap(), check: str = "") -> Mapping[str, JobHandle]:
        """Submit jobs as llmb does, with their secrets beside them. The scheduler's hooks do not see the secrets."""
        scripts = [attrs.evolve(self._contract.build(job), check=check) for job in jobs]
        self._scripts |= {script.id: script for script in scripts}
        with patch.dict(os.environ, secrets):
            SecretFiles(self.host, []).put(scripts)
        return self._submit(scripts, self.host)

    def submit_twice_at_once(self, job: Job) -> list[Mapping[str, JobHandle] | LlmbError]:
        """Submit a job from two threads, each with its own connection. Return the handles or the error of each."""
        script = self._scripts[job.id] = self._contract.build(job)
        barrier = threading.Barrier(2)

        def submit(host: Host) -> Mapping[str, JobHandle] | LlmbError:
            try:
                return self._submit([script], cast("Host", SimultaneousHost(host, barrier)))
            except LlmbError as error:
                return error

        with ThreadPoolExecutor(2) as threads:
            return list(threads.map(submit, (self.host, self._contract.second_connection or self.host)))

    def _submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        handles: Mapping[str, JobHandle] = self._contract.plugin.submit(scripts=scripts, host=host)
        for handle in handles.values():
            if handle.refused:
                fail(f"the scheduler rejected the job {handle.id}: {handle.refused}")
        return handles

    def cancel(self, job: Job) -> None:
        """Cancel a job."""
        self._contract.plugin.cancel(handles=[self._handle(self._scripts[job.id])], host=self.host)

    def poll(self, job: Job) -> JobStatus:
        """Return the status of a job, which need not be submitted."""
        handle = self._handle(self._contract.build(job))
        status: JobStatus = self._contract.plugin.poll(handles=[handle], host=self.host)[job.id]
        return status

    def history(self, job: Job) -> JobHistory:
        """Return the history of a job, empty if the scheduler does not know the job."""
        found: Mapping[str, JobHistory]
        found = self._contract.plugin.history(handles=[self._handle(self._scripts[job.id])], host=self.host)
        return found.get(job.id, JobHistory())

    def await_end(self, job: Job) -> JobStatus:
        """Wait until a job ends, and return its status."""
        return self.wait_until(lambda: self._ended(job), f"the job {job.id} did not end")

    def await_completion(self, job: Job, hint: str = "") -> None:
        """Wait until a job ends. Fail the test, with a hint for the author, if the job failed."""
        self.check_cause(job, self.await_end(job), "completed", hint)

    def check_cause(self, job: Job, status: JobStatus, cause: Cause, hint: str = "") -> None:
        """Fail the test if a job ended for another cause."""
        if status.cause != cause:
            how = " ".join(filter(None, [status.cause or "without a cause", status.reason and f"({status.reason})"]))
            fail(f"poll() reports the end of {job.id} as {how}, not as {cause}{hint}{self._logs_end()}")

    def _ended(self, job: Job) -> JobStatus | None:
        """Poll all jobs. Return the status of this job if it has ended."""
        handles = [self._handle(script) for script in self._scripts.values()]
        self._statuses = dict(self._contract.plugin.poll(handles=handles, host=self.host))
        status = self._statuses[job.id]
        return status if status.state == "ended" else None

    def wait_until(self, condition: Callable[[], T | None], problem: str) -> T:
        """Wait until a condition is true, and return its value. Fail the test with the problem after the deadline."""
        end = time.monotonic() + self._deadline_s
        while not (found := condition()):
            if time.monotonic() > end:
                states = ", ".join(f"{each} is {status.state}" for each, status in self._statuses.items())
                fail(f"{problem} within {self._deadline_s:g} s{f' ({states})' if states else ''}{self._logs_end()}")
            time.sleep(self._contract.plugin.poll_interval_s[0])
        return found

    def await_file(self, job: Job, name: str) -> None:
        """Wait until a job has written a file whose name begins with this."""
        self.wait_until(lambda: self.files(job, name), f"the job {job.id} did not start")

    def open_gate(self, job: Job) -> None:
        """Let a job continue that waits in `AWAIT_GATE`."""
        self.host.put({f"{job.directory}/gate": ""})

    def files(self, job: Job, prefix: str) -> list[str]:
        """Return the names of the files of a job that begin with this."""
        names = self.host.run(shlex.join(["ls", "-A", "--", job.directory])).stdout.splitlines()
        return [name for name in names if name.startswith(prefix)]

    def read(self, job: Job, name: str) -> str:
        """Return the text of a file of a job, or "" if it does not exist."""
        path = f"{job.directory}/{name}"
        return self.host.read({path: 0}).get(path, b"").decode(errors="replace")

    def find_text(self, job: Job, text: str) -> list[str]:
        """Return the files and logs of a job that contain a text, which no process has among its arguments."""
        logs = _log_files(self._scripts[job.id])
        search = shlex.join(["grep", "-rlsF", "-f", "/dev/stdin", "--", job.directory, *logs])
        found = self.host.run(f"{search} <<'END_OF_TEXT'\n{text}\nEND_OF_TEXT").stdout.splitlines()
        return [path.removeprefix(f"{job.directory}/") for path in dict.fromkeys(found)]

    def is_lock_free(self, job: Job) -> bool:
        """Check whether all processes that hold the file ``lock`` of a job end within `KILLED_S`."""
        command = ["flock", "-w", str(KILLED_S), f"{job.directory}/lock", "true"]
        return self.host.run(shlex.join(command)).exit_code == 0

    def _logs_end(self) -> str:
        """Return the last lines of all logs for a message."""
        logs = [log for each in self._scripts.values() for log in (f"{each.directory}/out.log", *_log_files(each))]
        lines = self.host.run(f"{shlex.join(['tail', '-qn', '3', '--', *logs])} 2>/dev/null").stdout.splitlines()
        return f"; the logs end with: {' | '.join(lines)}" if lines else ""

    def _handle(self, script: Script) -> JobHandle:
        return JobHandle(id=script.id, directory=script.directory)

    def end(self) -> None:
        """Cancel the jobs that still run, and remove the folder."""
        with contextlib.suppress(LlmbError):
            handles = [
                self._handle(script)
                for script in self._scripts.values()
                if self._statuses.get(script.id, JobStatus(state="unknown")).state != "ended"
            ]
            if handles:
                for _ in range(2):  # the second call grants no grace period
                    self._contract.plugin.cancel(handles=handles, host=self.host)
            self.host.run(shlex.join(["rm", "-rf", "--", self.workdir]))


def _log_files(script: Script) -> list[str]:
    """Return the paths of the logs of a job that starts once."""
    return [log.replace("{attempt}", "0") for logs in script.logs.values() for log in logs]


@contextmanager
def live_jobs(contract: SchedulerJobs, host: Host, deadline_s: float) -> Iterator[LiveJobs]:
    """Yield the jobs of a test, which are cancelled after it. An error of a hook fails the test."""
    folder = contract.target.get("workdir") or "$HOME/.cache/llmb-contract"
    parent = folder if folder.startswith("$HOME") else shlex.quote(folder)
    made = host.run(f"mkdir -p {parent} && mktemp -d {parent}/XXXXXX")
    if made.exit_code:
        fail(f"cannot create a folder in {folder} on run_on: {made.stderr.strip()}; set workdir in target")
    jobs = LiveJobs(contract, host, made.stdout.strip(), deadline_s)
    try:
        with errors_fail_the_test():
            yield jobs
    finally:
        jobs.end()
