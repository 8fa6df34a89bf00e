"""The options of srun for every phase of a job."""

from __future__ import annotations

from llmb import Job, Target
from llmb_slurm.options import SlurmOptions


def srun_options(job: Job, target: Target[SlurmOptions]) -> tuple[str, ...]:
    """Return the options of srun that start and end the ranks of every phase."""
    options = target.options
    mpi = options.mpi or job.mpi
    cpus = options.sbatch.get("cpus-per-task")
    return (
        f"--wait={options.wait}",
        f"--kill-on-bad-exit={int(options.kill_on_bad_exit)}",
        *((f"--mpi={mpi}",) if mpi else ()),
        *((f"--cpus-per-task={cpus}",) if cpus else ()),  # Slurm 22.05 and 23.02 do not pass on the job's own option
    )
