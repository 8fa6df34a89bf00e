"""Software that a publisher adds to the image, built once in a virtual environment over the Python of the image."""

from __future__ import annotations

from typing import Any

from llmb import Environment, FrozenMap, Job, Phase, Run, Task, assignments, content_key, resource_text

SCRIPT = "build_software.sh"
SPACE_GB = 10.0  # 2 GB in a build for H100; torchao and HybridEP also need the sources of CUTLASS and NCCL
TIME_LIMIT_S = 3600  # of the publisher's own job


def python_of(run: Run[Any]) -> str:
    """Return the Python of the run: that of the spec, else that of the built software, else that of the image."""
    if run.options.python is not None:
        return str(run.options.python)
    return f"{_folder(run)}/bin/python" if _is_built(run) else "python"


def software_tasks(run: Run[Any]) -> tuple[Task, ...]:
    """Return the task that builds the software in the image, if the recipe adds any and the spec names no Python."""
    if not _is_built(run):
        return ()
    folder, key = _folder(run), f"torchtitan-software-{_key(run)}"
    directory = f"{run.paths.cache}/tasks/{key}"
    build = Phase(
        name="build",
        command=("bash", f"{directory}/{SCRIPT}", folder),
        env=FrozenMap(run.settings["software"]),
        ranks="first",
        measured=False,
        outputs=(f"{folder}/.complete",),
    )
    job = Job(
        id=key,
        directory=directory,
        phases=(build,),
        nodes=1,
        tasks_per_node=1,
        gpus_per_node=0,
        environment=Environment(base=run.image),
        files=FrozenMap({f"{directory}/{SCRIPT}": resource_text(__package__, SCRIPT)}),
        time_limit_s=TIME_LIMIT_S,
    )
    check = f'{assignments(folder=folder)}\n[ -s "$folder/.complete" ]'
    return (Task(key=key, kind="software", work=job, check=check, space_gb=SPACE_GB),)


def _is_built(run: Run[Any]) -> bool:
    return run.options.python is None and "software" in run.settings


def _folder(run: Run[Any]) -> str:
    return f"{run.paths.cache}/software/torchtitan-{_key(run)}"


def _key(run: Run[Any]) -> str:
    """Return a key of the content: the image, the versions and the script that builds them."""
    image = run.image.pinned if run.image else ""
    versions = (f"{name}={value}" for name, value in sorted(run.settings["software"].items()))
    return content_key(image, *versions, resource_text(__package__, SCRIPT))
