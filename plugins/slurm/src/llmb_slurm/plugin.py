"""The Slurm scheduler: batch jobs on a cluster, one srun for each phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llmb import (
    DoctorCheck,
    Environment,
    Host,
    Image,
    Job,
    JobHandle,
    JobStatus,
    LogParser,
    Run,
    SchedulerHooks,
    Script,
    Target,
    Task,
    Venv,
    hookimpl,
    resource_text,
    venv_task,
)
from llmb_slurm.checks import checks
from llmb_slurm.choose import choose_runtime
from llmb_slurm.containers import import_task
from llmb_slurm.messages import MessagesToOthers, SlurmMessages
from llmb_slurm.options import SlurmOptions
from llmb_slurm.poll import poll_jobs
from llmb_slurm.script import batch_script, phase_logs
from llmb_slurm.submit import cancel_jobs, submit_jobs


class Slurm(SchedulerHooks[SlurmOptions]):
    """Jobs are Slurm's: they outlive ``llmb``, and are found again by the id that they carry."""

    options = SlurmOptions

    @hookimpl
    def prepare_env(self, environment: Environment, target: Target[SlurmOptions]) -> tuple[Task, ...]:
        """An image is imported by a job, a virtual environment made on the host; neither where runtime is none."""
        runtime, base = choose_runtime(environment, target), environment.base
        if isinstance(base, Image) and runtime == "pyxis":
            return (import_task(base, target),)
        return (venv_task(base, target.cache),) if isinstance(base, Venv) and runtime == "venv" else ()

    @hookimpl
    def build_job(self, job: Job, target: Target[SlurmOptions]) -> Script:
        """A batch script with a barrier between its phases."""
        return Script(
            id=job.id,
            directory=job.directory,
            text=batch_script(job, target),
            files=job.files,
            logs=phase_logs(job),
            provenance=f"{job.directory}/provenance",
            notes=_notes(job, target),
        )

    @hookimpl
    def parse_log(self, run: Run[Any] | None) -> LogParser:
        """Slurm's own words in a job's logs: time limit, preemption, node failure, memory, cancellation."""
        return SlurmMessages() if run else MessagesToOthers()

    @hookimpl
    def probe(self, target: Target[SlurmOptions]) -> str:
        """All for people who ask what is there; for runs only whether srun takes container images."""
        whole = resource_text("llmb_slurm", "probe.sh")
        if not target.gpu_types:
            return whole
        asks = target.images and target.options.runtime in (None, "pyxis")
        return f"only_images=yes\n{whole}" if asks else ""

    @hookimpl
    def checks(self, target: Target[SlurmOptions], host: Host) -> Sequence[DoctorCheck]:
        """Slurm itself, the partition and its GPUs, the account, containers, the clock."""
        return tuple(checks(target))

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """One command on the host, a few sbatch at a time, under a lock, for those that were not submitted before."""
        return submit_jobs(scripts, host)

    @hookimpl
    def poll(self, tickets: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
        """One squeue for all; sacct for those that have left the queue."""
        return poll_jobs(tickets, host)

    @hookimpl
    def cancel(self, tickets: Sequence[JobHandle], host: Host) -> None:
        """By their own ids, so no others of the user."""
        cancel_jobs(tickets, host)


def _notes(job: Job, target: Target[SlurmOptions]) -> tuple[str, ...]:
    """What may fail. It is not refused: the nodes, on which srun starts containers, may have what the host lacks."""
    if choose_runtime(job.environment, target) != "pyxis" or target.facts.get("pyxis") != "no":
        return ()
    where = target.host or "this machine"
    return (f"srun on {where} takes no container images: the run fails unless the nodes have pyxis",)
