"""A list of hosts: a job runs on as many of them as it needs, and takes turns with others there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmb import (
    Dataset,
    DoctorCheck,
    Environment,
    Fault,
    Host,
    Image,
    Job,
    JobHandle,
    JobStatus,
    LineParser,
    LogParser,
    Notice,
    Run,
    SchedulerHooks,
    Script,
    SpecError,
    Target,
    Task,
    Venv,
    cancel_detached,
    hookimpl,
    poll_detached,
    shown,
    venv_task,
)
from llmb_hosts.checks import host_checks
from llmb_hosts.options import HostsOptions
from llmb_hosts.script import job_script, phase_logs
from llmb_hosts.submit import submit_jobs


class Hosts(SchedulerHooks[HostsOptions]):
    """Jobs are detached processes of their hosts; what the first one says of a job is what is known of it."""

    options = HostsOptions
    poll_interval_s = (0.2, 2.0)

    @hookimpl
    def host(self, target: Target[HostsOptions]) -> str | None:
        """The first of the list."""
        first = target.options.hosts[0]
        if target.host not in (None, first):
            message = f"is {shown(target.host)}, and the hosts are reached through the first of them"
            raise SpecError(Fault(message=message, key="target.host", expected="no such key"))
        return first

    @hookimpl
    def prepare_env(self, environment: Environment, target: Target[HostsOptions]) -> tuple[Task, ...]:
        """A virtual environment in the shared directory."""
        base = environment.base
        if target.options.runtime == "none" or base is None:
            return ()
        if isinstance(base, Image):
            message = f"runs in the image {base.ref}, and commands are started here as they are"
            expected = 'target.runtime = "none" where all hosts have what it needs'
            raise SpecError(Fault(message=message, key="workload.recipe", expected=expected))
        return (venv_task(base, target.cache),) if isinstance(base, Venv) else ()

    @hookimpl
    def prepare_dataset(self, dataset: Dataset, target: Target[HostsOptions]) -> Dataset:
        """On one host."""
        return dataset.on_one_node()

    @hookimpl
    def build_job(self, job: Job, target: Target[HostsOptions]) -> Script:
        """A script that each of the hosts runs. Raises SpecError where there are too few."""
        there = target.options.hosts
        if job.nodes > len(there):
            message = f"needs {job.nodes} hosts, and target.hosts has {len(there)}"
            raise SpecError(Fault(message=message, key="workload.gpus", expected="fewer GPUs, or more hosts"))
        hosts = there[: job.nodes]
        return Script(
            id=job.id,
            directory=job.directory,
            text=job_script(job, hosts, target),
            files=job.files,
            logs=phase_logs(job),
            provenance=f"{job.directory}/provenance",
            time_limit_s=job.time_limit_s,
            grace_s=target.options.grace_s + 30,  # the script itself ends its ranks after theirs
            hosts=hosts[1:],
        )

    @hookimpl
    def parse_log(self, run: Run[Any] | None) -> LogParser:
        """A host that was lost."""
        return LostHosts()

    @hookimpl
    def checks(self, target: Target[HostsOptions], host: Host) -> Sequence[DoctorCheck]:
        """The other hosts."""
        return tuple(host_checks(target, host))

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Start each job on each of its hosts."""
        return submit_jobs(scripts, host)

    @hookimpl
    def poll(self, tickets: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
        """Ask the first host, by one command for all jobs."""
        return poll_detached(tickets, host)

    @hookimpl
    def cancel(self, tickets: Sequence[JobHandle], host: Host) -> None:
        """End the first host's part; the others end theirs when they see it."""
        cancel_detached(tickets, host)


class LostHosts(LineParser):
    """What the first host writes when another one is lost."""

    needles = (b"llmb-hosts: host ",)

    def read_line(self, line: bytes) -> Iterator[Notice]:
        """Which host."""
        if b" is lost: " in line:
            yield Notice(kind="node failure", text=line.decode(errors="replace").strip())
