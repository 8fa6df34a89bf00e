"""The Slurm scheduler: batch jobs on a cluster, with one srun for each phase."""

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llmb import (
    DoctorCheck,
    Environment,
    FrozenMap,
    Host,
    Image,
    Job,
    JobHandle,
    JobHistory,
    JobStatus,
    LogParser,
    Run,
    SchedulerHooks,
    Script,
    Signature,
    Target,
    Task,
    Venv,
    exported_variables_probe,
    hookimpl,
    image_file_task,
    read_signatures,
    unpassed_variables_note,
    venv_task,
)
from llmb_slurm.bash_files import bash_files, queries
from llmb_slurm.cancel import cancel_jobs
from llmb_slurm.choose_runtime import choose_runtime
from llmb_slurm.container_images import import_task
from llmb_slurm.doctor_checks.cluster import check_cluster
from llmb_slurm.doctor_checks.time_limit_memory_mpi import check_job
from llmb_slurm.job_history import query_history
from llmb_slurm.job_script import batch_script, phase_logs, provenance_script
from llmb_slurm.log_messages import ForeignSlurmMessages, SlurmMessages
from llmb_slurm.options import KEY_HINTS, SlurmOptions
from llmb_slurm.poll import poll_jobs
from llmb_slurm.submit import submit_jobs


class Slurm(SchedulerHooks[SlurmOptions]):
    """Scheduler whose jobs are Slurm jobs. They outlive ``llmb``, which finds them again by the id that they carry."""

    options = SlurmOptions
    key_hints = KEY_HINTS

    @functools.cached_property
    def _environ(self) -> Mapping[str, str]:
        """The environment of llmb. Reading ``os.environ`` decodes all variables, and a sweep has thousands of jobs."""
        return dict(os.environ)

    @hookimpl
    def prepare_env(self, environment: Environment, target: Target[SlurmOptions]) -> tuple[Task, ...]:
        """Return the task that imports the image in a job, or creates the virtual environment on the host.

        An image file of the user is only checked.
        """
        runtime, base = choose_runtime(environment, target), environment.base
        if isinstance(base, Image) and runtime == "pyxis":
            return (image_file_task(base.file) if base.file else import_task(base, target.workdir, target.cache),)
        return (venv_task(base, target.cache),) if isinstance(base, Venv) and runtime == "venv" else ()

    @hookimpl
    def build_job(self, job: Job, target: Target[SlurmOptions]) -> Script:
        """Return a batch script with a barrier between its phases. Raise SpecError if Slurm cannot run the job."""
        return Script(
            id=job.id,
            directory=job.directory,
            text=batch_script(job, target),
            files=FrozenMap({**job.files, f"{job.directory}/provenance.sh": provenance_script()}),
            logs=phase_logs(job),
            provenance_file=f"{job.directory}/provenance",
            attempts_file=f"{job.directory}/attempts",
            notes=_notes(job, target, self._environ),
            reserved_files=("provenance.sh", "attempt", "claim", "job_id", "ended", "missing"),
        )

    @hookimpl
    def parse_log(self, run: Run[Any] | None) -> LogParser:
        """Return a parser of Slurm's messages: time limit, preemption, node failure, out of memory, cancellation."""
        return SlurmMessages() if run else ForeignSlurmMessages()

    @hookimpl
    def diagnose(self) -> Iterable[Signature]:
        """Return the causes of failure that Slurm, pyxis and enroot report."""
        return read_signatures("llmb_slurm", "signatures.toml")

    @hookimpl
    def probe(self, target: Target[SlurmOptions]) -> str:
        """Return the complete probe for ``llmb doctor``; for runs, only what they need.

        That is the check for pyxis, and the variables that another host exports, which sbatch does not pass on.
        """
        complete = "\n".join([bash_files("login_defaults.sh"), queries("probe.sh")])
        if not target.gpu_types:
            return complete
        exported = exported_variables_probe() if target.host else ""
        needs_pyxis = target.uses_images and target.options.runtime in (None, "pyxis")
        return f"{exported}only_pyxis=yes\n{complete}" if needs_pyxis else exported

    @hookimpl
    def checks(self, target: Target[SlurmOptions], host: Host, scripts: Sequence[Script]) -> Sequence[DoctorCheck]:
        """Return the checks of Slurm, the partition and its GPUs, the account, containers, the clock and the jobs."""
        return tuple(check_cluster(target, host, scripts))

    @hookimpl
    def check_job(self, job: Job, target: Target[SlurmOptions]) -> Sequence[DoctorCheck]:
        """Return the checks of time limit, nodes and their GPUs, MPI, NVLink domains and IMEX."""
        return tuple(check_job(job, target))

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Submit the jobs that were not submitted before, with one command on the host and under a lock."""
        return submit_jobs(scripts, host)

    @hookimpl
    def poll(self, handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
        """Query all jobs with one squeue, and with sacct those that have left the queue."""
        return poll_jobs(handles, host)

    @hookimpl
    def history(self, handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobHistory]:
        """Query sacct for all starts of these jobs, and for the user who cancelled them."""
        return query_history(handles, host)

    @hookimpl
    def cancel(self, handles: Sequence[JobHandle], host: Host) -> None:
        """Cancel these jobs with scancel."""
        cancel_jobs(handles, host)


def _notes(job: Job, target: Target[SlurmOptions], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Warn of exported variables that jobs do not get, and if the host lacks pyxis.

    The latter is no error, because the nodes, which start the containers, may have pyxis.
    """
    notes = unpassed_variables_note(job, environ, facts=target.facts)
    if choose_runtime(job.environment, target) != "pyxis" or target.facts.get("pyxis") != "no":
        return notes
    where = target.host or "this machine"
    return (*notes, f"srun on {where} does not support container images; the run fails unless the nodes have pyxis")
