"""The scheduler: a job runs on as many hosts of a list as it needs, and queues for each of them."""

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
    format_value,
    hookimpl,
    poll_detached,
    venv_task,
)
from llmb_hosts.doctor_checks import host_checks
from llmb_hosts.job_script import job_script, phase_logs
from llmb_hosts.options import HostsOptions
from llmb_hosts.submit import submit_jobs


class Hosts(SchedulerHooks[HostsOptions]):
    """Scheduler whose jobs are detached processes of their hosts. The first host keeps the status of a job."""

    options = HostsOptions
    poll_interval_s = (0.2, 2.0)

    @hookimpl
    def host(self, target: Target[HostsOptions]) -> str | None:
        """Return the first host of the list. Raise SpecError if target.host names another one."""
        first = target.options.hosts[0]
        if target.host not in (None, first):
            message = (
                f"{format_value(target.host)} is not the first of target.hosts, through which llmb reaches the hosts"
            )
            raise SpecError(Fault(message=message, key="target.host", expected="no such key"))
        return first

    @hookimpl
    def prepare_env(self, environment: Environment, target: Target[HostsOptions]) -> tuple[Task, ...]:
        """Return the task that creates a virtual environment in the shared directory.

        Raise SpecError for a recipe with an image, unless ``target.runtime`` is "none".
        """
        base = environment.base
        if target.options.runtime == "none" or base is None:
            return ()
        if isinstance(base, Image):
            message = f"the recipe runs in the image {base.ref}, but this scheduler does not start containers"
            expected = 'target.runtime = "none" if all hosts have what the recipe needs'
            raise SpecError(Fault(message=message, key="workload.recipe", expected=expected))
        return (venv_task(base, target.cache),) if isinstance(base, Venv) else ()

    @hookimpl
    def prepare_dataset(self, dataset: Dataset, target: Target[HostsOptions]) -> Dataset:
        """Run the tasks of the dataset on one host."""
        return dataset.on_one_node()

    @hookimpl
    def build_job(self, job: Job, target: Target[HostsOptions]) -> Script:
        """Return a script that each host of the job runs. Raise SpecError if target.hosts has too few."""
        available = target.options.hosts
        if job.nodes > len(available):
            message = f"the job needs {job.nodes} hosts, but target.hosts has {len(available)}"
            raise SpecError(Fault(message=message, key="workload.gpus", expected="fewer GPUs, or more hosts"))
        if job.mpi and not job.mpi_optional:
            message = f"the job needs an MPI launcher ({job.mpi}), which this scheduler does not have"
            raise SpecError(Fault(message=message, key="target.scheduler", expected="a scheduler that has one"))
        hosts = available[: job.nodes]
        return Script(
            id=job.id,
            directory=job.directory,
            text=job_script(job, hosts, target),
            files=job.files,
            logs=phase_logs(job),
            provenance_file=f"{job.directory}/provenance",
            time_limit_s=job.time_limit_s,
            grace_s=target.options.grace_s + 30,  # more than the grace after which the script ends its ranks
            hosts=hosts[1:],
            reserved_files=("meet",),
        )

    @hookimpl
    def parse_log(self, run: Run[Any] | None) -> LogParser:
        """Return a parser for the messages about lost hosts."""
        return LostHosts()

    @hookimpl
    def checks(self, target: Target[HostsOptions], host: Host, scripts: Sequence[Script]) -> Sequence[DoctorCheck]:
        """Return the checks of the other hosts."""
        return tuple(host_checks(target, host))

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Start each job on each of its hosts."""
        return submit_jobs(scripts, host)

    @hookimpl
    def poll(self, handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
        """Query the first host with one command for all jobs."""
        return poll_detached(handles, host)

    @hookimpl
    def cancel(self, handles: Sequence[JobHandle], host: Host) -> None:
        """Cancel the part of the first host. The other hosts then end theirs."""
        cancel_detached(handles, host)


class LostHosts(LineParser):
    """Parser for the message that a host prints if another host is lost."""

    needles = (b"llmb-hosts: host ",)

    def read_line(self, line: bytes) -> Iterator[Notice]:
        """Yield a node failure for a lost host."""
        if b" is lost: " in line:
            yield Notice(kind="node failure", text=line.decode(errors="replace").strip())
