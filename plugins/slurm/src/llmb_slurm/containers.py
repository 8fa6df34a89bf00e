"""Containers by pyxis, from images that enroot imported."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmb import Image, Job, Mount, SpecError, Target, content_key
from llmb_slurm.options import SlurmOptions


def image_key(image: Image) -> str:
    """Names an image by its address and digest: what people recognise, then what tells two apart."""
    words = re.sub(r"[^a-z0-9.]+", "-", image.ref.lower().rpartition("/")[2]).strip("-.")
    return f"image-{words}-{content_key(image.ref, image.digest or '')}"


def image_file(image: Image, cache: str) -> str:
    """Where an imported image lies."""
    return f"{cache}/images/{image_key(image)}.sqsh"


def container_options(job: Job, target: Target[SlurmOptions]) -> tuple[str, ...]:
    """The options by which srun runs a phase in a container; the run's and the cache's paths are the same inside."""
    image = job.environment.base
    if not isinstance(image, Image):
        return ()
    shared = [Mount(source=path, target=path) for path in (job.directory, target.cache)]
    return (
        f"--container-image={image_file(image, target.cache)}",
        f"--container-mounts={','.join(_mounts([*shared, *job.mounts]))}",
        f"--container-workdir={job.directory}",
        "--container-writable",
        "--no-container-mount-home",
    )


def _mounts(mounts: list[Mount]) -> Iterator[str]:
    for mount in mounts:
        for path in (mount.source, mount.target):
            if re.search(r"[,:\s\\]", path):
                raise SpecError(f"pyxis cannot mount {path!r}: a path with a comma, a colon or a space")
        yield f"{mount.source}:{mount.target}" + (":ro" if mount.read_only else "")
