"""The CUPTI library that the publisher's wrapper mounts over the one of nsys in the image, for captures."""

from typing import Any

from llmb import Mount, Run, Task, assignments, content_key, resource_text


def cupti_tasks(run: Run[Any]) -> tuple[Task, ...]:
    """Return the task that downloads the library, if the run needs it."""
    if not _needs_library(run):
        return ()
    url, file = run.settings["cupti"]["url"], _file(run)
    task = Task(
        key=f"cupti-{content_key(url)}",
        kind="CUPTI library for nsys",
        work=f"{assignments(url=url, file=file)}\n{resource_text(__package__, 'cupti_fetch.sh')}",
        check=f'{assignments(file=file)}\n[ -s "$file" ]',
        space_gb=run.settings["cupti"]["space_gb"],
    )
    return (task,)


def cupti_mounts(run: Run[Any]) -> tuple[Mount, ...]:
    """Return the mount of the library over the one in the image, if the run needs it."""
    if not _needs_library(run):
        return ()
    return (Mount(source=_file(run), target=run.settings["cupti"]["path"], read_only=True),)


def _needs_library(run: Run[Any]) -> bool:
    """Check whether the run is captured, in the recipe's own image. Another image may have no file at this path."""
    return run.profile is not None and "cupti" in run.settings and "workload.image" not in run.differences


def _file(run: Run[Any]) -> str:
    return f"{run.paths.cache}/cupti/{content_key(run.settings['cupti']['url'])}/libcupti.so"
