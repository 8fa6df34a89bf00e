"""Docker, and Podman in its place: an image is pulled once, and each phase runs in a container of its own."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Literal

from llmb import Environment, Image, Job, Mount, Target, Task, assignments, content_key
from llmb_local.bash import library
from llmb_local.options import LocalOptions


class Docker:
    """Docker or Podman, which takes the same words."""

    def __init__(self, engine: Literal["docker", "podman"]) -> None:
        self._engine = engine

    def tasks(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """Pull the image, unless the engine has it. Engines register an image only when it is whole."""
        assert isinstance(environment.base, Image)
        image = environment.base.pinned
        settings = assignments(engine=self._engine, image=image)
        pull = Task(
            key=f"{self._engine}-{content_key(image)}",
            kind=f"{self._engine} image {environment.base.ref}",
            work="\n".join([settings, library("refusals.sh"), library("pull.sh")]),
            check=f"{self._engine} image inspect {shlex.quote(image)}",
        )
        return (pull,)

    def venv(self, job: Job, cache: str) -> str:
        """None: an image has its own Python."""
        return ""

    def container(self, job: Job, target: Target[LocalOptions]) -> str:
        """Settings, then docker.sh."""
        assert isinstance(job.environment.base, Image)
        stated = "yes" if target.options.machine_gpus is not None else ""
        settings = assignments(engine=self._engine, image=job.environment.base.pinned, gpus_stated=stated)
        words = shlex.join(["--label", f"llmb.run={job.id}", *run_options(job, target)])
        arrays = f"run_options=({words})\nmkdir -p {shlex.quote(target.cache)}"
        return "\n".join([settings, arrays, *map(library, ("refusals.sh", "secrets.sh", "docker.sh"))])


def run_options(job: Job, target: Target[LocalOptions]) -> Iterator[str]:
    """The words of ``docker run`` that are known before."""
    options = target.options.container
    yield from ("--init", "--network", options.network, "--ipc", options.ipc)
    if options.shm_gb is not None:
        yield from ("--shm-size", f"{round(options.shm_gb * 1e9)}b")
    if options.memory_gb is not None:
        yield from ("--memory", f"{round(options.memory_gb * 1e9)}b")
    for name, value in options.ulimits.items():
        yield from ("--ulimit", f"{name}={value}")
    for capability in options.capabilities:
        yield from ("--cap-add", capability)
    yield from ("--workdir", job.directory, "--env", f"LLMB_RUN_DIR={job.directory}", "--entrypoint", "")
    for mount in job.container_mounts(target.cache):
        yield from ("--mount", _mount(mount))
    yield from options.options


def _mount(mount: Mount) -> str:
    """The fields of --mount, which are those of a line of CSV."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    fields += ["readonly"] if mount.read_only else []
    return ",".join('"' + field.replace('"', '""') + '"' if set(field) & set(',"\n') else field for field in fields)
