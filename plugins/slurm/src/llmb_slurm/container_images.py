"""Container images: files of the user, or images that enroot imports once."""

import functools
import re

from llmb import (
    FrozenMap,
    Image,
    Job,
    Phase,
    Task,
    content_key,
    resource_text,
    squashfs_check,
    squashfs_functions,
)

IMPORT_LIMIT_S = 2 * 3600
SPACE_GB = 30.0  # the largest published image takes 22 GB


def image_key(image: Image) -> str:
    """Return the name of an image: a readable part, then a key of its address and digest."""
    words = re.sub(r"[^a-z0-9.]+", "-", image.ref.lower().rpartition("/")[2]).strip("-.")
    return f"image-{words}-{content_key(image.ref, image.digest or '')}"


def image_file(image: Image, cache: str) -> str:
    """Return the path of the user's own file, or of an imported image."""
    return image.file or f"{cache}/images/{image_key(image)}.sqsh"


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
