"""Enroot: an image becomes a file once, a job unpacks it into a container of its own, and all its phases run there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from llmb import (
    Environment,
    Fault,
    Image,
    Job,
    Mount,
    SpecError,
    Target,
    Task,
    assignments,
    content_key,
    shown,
    squashfs_check,
    squashfs_functions,
)
from llmb_local.bash import library
from llmb_local.options import LocalOptions


class Enroot:
    """Enroot without root's rights, and without a daemon."""

    def tasks(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """Import the image into a file, from Docker where that has it. The file gets its name if it is whole."""
        assert isinstance(environment.base, Image)
        file = image_file(environment.base, target.cache)
        image = environment.base
        settings = assignments(engine="enroot", image=image.pinned, source=enroot_address(image), file=file)
        task = Task(
            key=f"enroot-{content_key(file)}",
            kind=f"enroot image {environment.base.ref}",
            work="\n".join([settings, library("refusals.sh"), squashfs_functions(), library("import.sh")]),
            check=squashfs_check(file),
        )
        return (task,)

    def venv(self, job: Job, cache: str) -> str:
        """None: an image has its own Python."""
        return ""

    def container(self, job: Job, target: Target[LocalOptions]) -> str:
        """Settings, then enroot.sh."""
        assert isinstance(job.environment.base, Image)
        file = image_file(job.environment.base, target.cache)
        stated = "yes" if target.options.machine_gpus is not None else ""
        settings = assignments(engine="enroot", image=job.environment.base.ref, file=file, gpus_stated=stated)
        words = [word for mount in job.container_mounts(target.cache) for word in ("--mount", _mount(mount))]
        options = f"start_options=({shlex.join([*words, *target.options.container.options])})"
        cache = f"mkdir -p {shlex.quote(target.cache)}"
        return "\n".join([settings, options, cache, *map(library, ("refusals.sh", "secrets.sh", "enroot.sh"))])


def enroot_address(image: Image) -> str:
    """The image as enroot wants it: a ``#`` after the registry, which else were taken for a user of Docker Hub.

    The digest stands in the place of a tag: ``:sha256:...`` is read by enroot 3.1 to 4.1, ``@sha256:...`` not before
    4.0 (docker::_parse_uri in its src/docker.sh).
    """
    name = image.pinned.removeprefix(f"{image.registry}/").replace("@", ":")
    return f"docker://{image.registry}#{name}" if image.registry else f"docker://{name}"


def image_file(image: Image, cache: str) -> str:
    """Where the imported image lies."""
    name = re.sub("[/:@]", "+", image.ref)
    return f"{cache}/enroot/{name}-{content_key(image.ref, image.digest or '')}.sqsh"


def _mount(mount: Mount) -> str:
    """The fields of a line of fstab, with colons between them. Raises SpecError for a path that none can hold."""
    return ":".join(_mount_fields(mount))


def _mount_fields(mount: Mount) -> Iterator[str]:
    for path in (mount.source, mount.target):
        if set(path) & set(": \t\n\\#"):
            message = f"{shown(path)} has a character that enroot's mounts cannot have"
            raise SpecError(Fault(message=message, key="target.runtime", expected="another runtime, or another path"))
        yield path
    yield "none"
    yield f"x-create=auto,rbind,{'ro' if mount.read_only else 'rw'}"
