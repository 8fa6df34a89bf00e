"""Container images, which enroot imports once, and the srun options that run a phase in a container with pyxis."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from llmb import (
    Fault,
    FrozenMap,
    Image,
    Job,
    Mount,
    Phase,
    SpecError,
    Target,
    Task,
    content_key,
    format_value,
    resource_text,
    squashfs_check,
    squashfs_functions,
)
from llmb_slurm.options import SlurmOptions

UNMOUNTABLE = re.compile(r"[,:\s\\]")
"""Characters that --container-mounts does not support in a path."""

IMPORT_LIMIT_S = 2 * 3600
SPACE_GB = 30.0  # the largest published image takes 22 GB


def image_key(image: Image) -> str:
    """Return the name of an image: a readable part, then a key of its address and digest."""
    words = re.sub(r"[^a-z0-9.]+", "-", image.ref.lower().rpartition("/")[2]).strip("-.")
    return f"image-{words}-{content_key(image.ref, image.digest or '')}"


def image_file(image: Image, cache: str) -> str:
    """Return the path of an imported image."""
    return f"{cache}/images/{image_key(image)}.sqsh"


def enroot_address(image: Image) -> str:
    """Return the address of an image in enroot's syntax, with ``#`` between registry and name.

    Without the ``#``, enroot takes the registry for a user of Docker Hub. The digest replaces the tag: enroot 3.1 to
    4.1 read ``:sha256:...``, but only 4.0 and later read ``@sha256:...`` (docker::_parse_uri in its src/docker.sh).
    """
    name = image.pinned.removeprefix(f"{image.registry}/").replace("@", ":")
    return f"docker://{image.registry}#{name}" if image.registry else f"docker://{name}"


@functools.lru_cache(maxsize=64)
def import_task(image: Image, workdir: str, cache: str) -> Task:
    """Return the task that imports an image in a job on a compute node. Its check examines the file."""
    key, file = image_key(image), image_file(image, cache)
    directory = f"{workdir}/tasks/{key}"
    script = resource_text("llmb_slurm", "import_image.sh")
    command = ("bash", f"{directory}/import_image.sh", file, enroot_address(image))
    job = Job(
        id=key,
        directory=directory,
        phases=(Phase(name="import", command=command, ranks="first", measured=False, contained=False),),
        nodes=1,
        tasks_per_node=1,
        gpus_per_node=0,
        files=FrozenMap({f"{directory}/import_image.sh": script, f"{directory}/squashfs.sh": squashfs_functions()}),
        time_limit_s=IMPORT_LIMIT_S,
    )
    return Task(key=key, kind="container image", work=job, check=squashfs_check(file), space_gb=SPACE_GB)


def container_options(job: Job, target: Target[SlurmOptions]) -> tuple[str, ...]:
    """Return the srun options that run a phase in a container, empty for a job without an image.

    The run's directory and the cache have the same path inside. Raise SpecError if pyxis cannot mount a path.
    """
    image = job.environment.base
    if not isinstance(image, Image):
        return ()
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
