"""The Slurm scheduler: batch jobs on a cluster, one srun for each phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmb import (
    Host,
    Job,
    JobStatus,
    SchedulerHooks,
    Script,
    Target,
    Ticket,
    hookimpl,
)
from llmb_slurm.options import SlurmOptions
from llmb_slurm.poll import poll_jobs
from llmb_slurm.script import batch_script, phase_logs
from llmb_slurm.submit import cancel_jobs, submit_jobs


class Slurm(SchedulerHooks[SlurmOptions]):
    """Jobs are Slurm's: they outlive ``llmb``, and are found again by the id that they carry."""

    options = SlurmOptions

    @hookimpl
    def build_job(self, job: Job, target: Target[SlurmOptions]) -> Script:
        """A batch script with a barrier between its phases."""
        return Script(
            id=job.id,
            directory=job.directory,
            text=batch_script(job, target, None),
            files=job.files,
            logs=phase_logs(job),
            provenance=f"{job.directory}/provenance",
        )

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, Ticket]:
        """One loop of sbatch on the host, under a lock, for those that were not submitted before."""
        return submit_jobs(scripts, host)

    @hookimpl
    def poll(self, tickets: Sequence[Ticket], host: Host) -> Mapping[str, JobStatus]:
        """One squeue for all; sacct for those that have left the queue."""
        return poll_jobs(tickets, host)

    @hookimpl
    def cancel(self, tickets: Sequence[Ticket], host: Host) -> None:
        """By their own ids, so no others of the user."""
        cancel_jobs(tickets, host)
