"""Docker and Podman: pull an image once, and run each phase in a container of its own."""

import shlex
from collections.abc import Iterator
from typing import Literal

from llmb import Environment, Image, Job, Mount, Target, Task, assignments, content_key
from llmb_local.bash_files import bash_file
from llmb_local.options import LocalOptions
from llmb_local.runtimes import Runtime


class Docker(Runtime):
    """Docker, or Podman, which has the same command line."""

    def __init__(self, engine: Literal["docker", "podman"]) -> None:
        self._engine = engine

    def tasks(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """Return the task that pulls the image. An engine lists an image only if it is complete."""
        assert isinstance(environment.base, Image)
        image = environment.base.pinned
        settings = assignments(engine=self._engine, image=image)
        pull = Task(
            key=f"{self._engine}-{content_key(image)}",
            kind=f"{self._engine} image {environment.base.ref}",
            work="\n".join([settings, bash_file("runtimes/container_errors.sh"), bash_file("runtimes/docker_pull.sh")]),
            check=f"{self._engine} image inspect {shlex.quote(image)}",
        )
        return (pull,)

    def container(self, job: Job, target: Target[LocalOptions]) -> str:
        """Return the settings of the job, followed by docker_run.sh."""
        assert isinstance(job.environment.base, Image)
        stated = "yes" if target.options.machine_gpus is not None else ""
        settings = assignments(engine=self._engine, image=job.environment.base.pinned, gpus_stated=stated)
        options = shlex.join(["--label", f"llmb.run={job.id}", *run_options(job, target)])
        arrays = f"run_options=({options})\nmkdir -p {shlex.quote(target.cache)}"
        files = ("container_errors.sh", "container_secrets.sh", "docker_run.sh")
        return "\n".join([settings, arrays, *(bash_file(f"runtimes/{name}") for name in files)])


def run_options(job: Job, target: Target[LocalOptions]) -> Iterator[str]:
    """Yield the options of ``docker run`` that do not depend on the state of the machine."""
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
    """Return the value of --mount, which the engine parses as a line of CSV."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    fields += ["readonly"] if mount.read_only else []
    return ",".join('"' + field.replace('"', '""') + '"' if set(field) & set(',"\n') else field for field in fields)
