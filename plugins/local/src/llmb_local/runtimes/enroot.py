"""Enroot: import an image into a file once, and run all phases of a job in one container unpacked from the file."""

import re
import shlex

import attrs

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
    format_value,
    image_file_task,
    squashfs_check,
    squashfs_functions,
)
from llmb_local.bash_files import bash_file
from llmb_local.options import ContainerOptions, LocalOptions
from llmb_local.runtimes import Runtime

DRIVER_CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
"""The variable from which enroot's hook reads which parts of NVIDIA's driver a container needs."""


class Enroot(Runtime):
    """Enroot, which needs no root rights and no daemon."""

    def tasks(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """Return the task that imports the image into a file, from Docker if Docker has the image.

        The file gets its final name only if it is complete. The user's own file is only checked.
        """
        assert isinstance(environment.base, Image)
        image = environment.base
        if image.file:
            return (image_file_task(image.file),)
        file = image_file(image, target.cache)
        settings = assignments(engine="enroot", image=image.pinned, source=enroot_address(image), file=file)
        functions = [bash_file("runtimes/container_errors.sh"), squashfs_functions()]
        task = Task(
            key=f"enroot-{content_key(file)}",
            kind=f"enroot image {image.ref}",
            work="\n".join([settings, *functions, bash_file("runtimes/enroot_import.sh")]),
            check=squashfs_check(file),
        )
        return (task,)

    def container(self, job: Job, target: Target[LocalOptions]) -> str:
        """Return the settings of the job, followed by enroot_start.sh.

        Raise SpecError if enroot cannot mount a path, or does not support a key of [target.container].
        """
        assert isinstance(job.environment.base, Image)
        _check_options(target.options.container)
        file = image_file(job.environment.base, target.cache)
        stated = "yes" if target.options.machine_gpus is not None else ""
        settings = assignments(engine="enroot", image=job.environment.base.ref, file=file, gpus_stated=stated)
        words = [word for mount in job.container_mounts(target.cache) for word in ("--mount", _mount(mount))]
        if (value := job.env.get(DRIVER_CAPABILITIES)) is not None:  # enroot needs it before the job's script runs
            words += ["--env", f"{DRIVER_CAPABILITIES}={value}"]
        options = f"start_options=({shlex.join([*words, *target.options.container.options])})"
        cache = f"mkdir -p {shlex.quote(target.cache)}"
        files = ("container_errors.sh", "container_secrets.sh", "enroot_start.sh")
        return "\n".join([settings, options, cache, *(bash_file(f"runtimes/{name}") for name in files)])


def enroot_address(image: Image) -> str:
    """Return the address of an image in enroot's syntax, with ``#`` between registry and name.

    Without the ``#``, enroot takes the registry for a user of Docker Hub. The digest replaces the tag: enroot 3.1 to
    4.1 read ``:sha256:...``, but only 4.0 and later read ``@sha256:...`` (docker::_parse_uri in its src/docker.sh).
    """
    name = image.pinned.removeprefix(f"{image.registry}/").replace("@", ":")
    return f"docker://{image.registry}#{name}" if image.registry else f"docker://{name}"


def image_file(image: Image, cache: str) -> str:
    """Return the path of the user's own file, or of the imported image."""
    if image.file:
        return image.file
    name = re.sub("[/:@]", "+", image.ref)
    return f"{cache}/enroot/{name}-{content_key(image.ref, image.digest or '')}.sqsh"


def _check_options(container: ContainerOptions) -> None:
    """Raise SpecError for each key other than ``options`` that the user set to another value than its default."""
    others = [field for field in attrs.fields(ContainerOptions) if field.name != "options"]
    if wrong := [field.name for field in others if getattr(container, field.name) != field.default]:
        message, expected = "enroot does not support this key", "no such key, or target.runtime with another engine"
        raise SpecError(*(Fault(message=message, key=f"target.container.{name}", expected=expected) for name in wrong))


def _mount(mount: Mount) -> str:
    """Return the value of --mount: the fields of an fstab line, separated by colons.

    Raise SpecError if a path contains a character that fstab fields cannot contain.
    """
    for path in (mount.source, mount.target):
        if set(path) & set(": \t\n\\#"):
            message = f"{format_value(path)} contains a character that enroot's mounts do not support"
            raise SpecError(Fault(message=message, key="target.runtime", expected="another runtime, or another path"))
    return f"{mount.source}:{mount.target}:none:x-create=auto,rbind,{'ro' if mount.read_only else 'rw'}"
