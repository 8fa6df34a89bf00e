"""Scheduler plugin for __Name__. This example runs each job in the background of the target's host."""

from collections.abc import Mapping, Sequence

from llmb import (
    Dataset,
    Environment,
    Fault,
    Host,
    Image,
    Job,
    JobHandle,
    JobStatus,
    SchedulerHooks,
    Script,
    SpecError,
    Target,
    Task,
    Venv,
    hookimpl,
    venv_task,
)

from llmb___name__.commands import cancel_jobs, poll_jobs, submit_jobs
from llmb___name__.job_script import job_script, phase_logs
from llmb___name__.options import Options


class __Name__(SchedulerHooks[Options]):
    """Jobs on one machine. A scheduler of several nodes leaves ``single_node`` out, and prepare_dataset() too."""

    options = Options
    single_node = True
    poll_interval_s = (0.2, 2.0)

    @hookimpl
    def prepare_env(self, environment: Environment, target: Target[Options]) -> tuple[Task, ...]:
        """Return the task that creates a virtual environment. Raise SpecError for an image."""
        base = environment.base
        if isinstance(base, Image):
            message = f"the recipe runs in the image {base.ref}, but this scheduler does not start containers"
            raise SpecError(Fault(message=message, key="target.scheduler", expected="another scheduler"))
        return (venv_task(base, target.cache),) if isinstance(base, Venv) else ()

    @hookimpl
    def prepare_dataset(self, dataset: Dataset, target: Target[Options]) -> Dataset:
        """Run the tasks of the dataset on one node."""
        return dataset.on_one_node()

    @hookimpl
    def build_job(self, job: Job, target: Target[Options]) -> Script:
        """Return the script of a job. Raise SpecError for a job that the scheduler does not support."""
        if job.nodes > 1:
            message = f"the job needs {job.nodes} nodes, but this scheduler has one"
            raise SpecError(Fault(message=message, key="workload.gpus", expected="fewer GPUs"))
        if job.mpi and not job.mpi_optional:
            message = f"the job needs an MPI launcher ({job.mpi}), which this scheduler does not have"
            raise SpecError(Fault(message=message, key="target.scheduler", expected="another scheduler"))
        return Script(
            id=job.id,
            directory=job.directory,
            text=job_script(job, target),
            files=job.files,
            logs=phase_logs(job),
            provenance_file=f"{job.directory}/provenance",
            attempts_file=f"{job.directory}/attempts",
            reserved_files=("pid", "exit_code", "cancelled", "timed_out"),
        )

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Submit the jobs that were not submitted before."""
        return submit_jobs(scripts, host)

    @hookimpl
    def poll(self, handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
        """Query all jobs with one command."""
        return poll_jobs(handles, host)

    @hookimpl
    def cancel(self, handles: Sequence[JobHandle], host: Host) -> None:
        """Cancel these jobs and no others."""
        cancel_jobs(handles, host)
