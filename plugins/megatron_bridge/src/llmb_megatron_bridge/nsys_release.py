"""The release of nsys that the publisher's wrapper mounts over the one in the image, for captures."""

from typing import Any

from llmb import Mount, Run, Task, assignments, content_key, resource_text


def nsys_tasks(run: Run[Any]) -> tuple[Task, ...]:
    """Return the task that downloads and installs the release, if the run needs it."""
    if not _needs_release(run):
        return ()
    url, folder = run.settings["nsys_release"]["url"], _folder(run)
    task = Task(
        key=f"nsys-{content_key(url)}",
        kind="Nsight Systems",
        work=f"{assignments(url=url, folder=folder)}\n{resource_text(__package__, 'nsys_fetch.sh')}",
        check=f'{assignments(folder=folder)}\n[ -e "$folder/bin/nsys" ]',
        space_gb=run.settings["nsys_release"]["space_gb"],
    )
    return (task,)


def nsys_mounts(run: Run[Any]) -> tuple[Mount, ...]:
    """Return the mount of the release over the one in the image, if the run needs it."""
    if not _needs_release(run):
        return ()
    return (Mount(source=_folder(run), target=run.settings["nsys_release"]["path"], read_only=True),)


def _needs_release(run: Run[Any]) -> bool:
    """Check whether the run is captured, in the recipe's own image. Another image may have no nsys at this path."""
    return run.profile is not None and "nsys_release" in run.settings and "workload.image" not in run.differences


def _folder(run: Run[Any]) -> str:
    return f"{run.paths.cache}/nsys/{content_key(run.settings['nsys_release']['url'])}"
