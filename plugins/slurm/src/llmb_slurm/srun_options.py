"""The options of srun: those of every phase, and those of pyxis for a phase in a container."""

import re
from collections.abc import Iterator

from llmb import Fault, Image, Job, Mount, SpecError, Target, format_value
from llmb_slurm.container_images import image_file
from llmb_slurm.options import SlurmOptions

UNMOUNTABLE = re.compile(r"[,:\s\\]")
"""Characters that --container-mounts does not support in a path."""


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


def container_options(job: Job, image: Image, target: Target[SlurmOptions]) -> tuple[str, ...]:
    """Return the srun options that run a phase in a container of the image.

    The run's directory and the cache have the same path inside. Raise SpecError if pyxis cannot mount a path.
    """
    if wrong := [*_mount_faults(job, target)]:
        raise SpecError(*wrong)
    return (
        f"--container-image={image_file(image, target.cache)}",
        f"--container-mounts={','.join(map(_mount, job.container_mounts(target.cache)))}",
        f"--container-workdir={job.directory}",
        "--container-writable",
        "--no-container-mount-home",
    )


def _mount_faults(job: Job, target: Target[SlurmOptions]) -> Iterator[Fault]:
    """Yield an error for each path that pyxis cannot mount; for the work directory alone, not for the paths below."""
    if UNMOUNTABLE.search(target.workdir):
        yield _unmountable(target.workdir, "target.workdir")
        return
    for mount in job.mounts:
        for path in dict.fromkeys((mount.source, mount.target)):
            if UNMOUNTABLE.search(path):
                yield _unmountable(path, f'mounts."{mount.source}"')


def _unmountable(path: str, key: str) -> Fault:
    expected = "a path without commas, colons, spaces and backslashes"
    return Fault(message=f"pyxis cannot mount {format_value(path)}", key=key, expected=expected)


def _mount(mount: Mount) -> str:
    return f"{mount.source}:{mount.target}" + (":ro" if mount.read_only else "")
