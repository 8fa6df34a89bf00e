"""Parts of the profiler that the publisher's wrapper mounts over those in the image, for captures."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from llmb import Mount, Run, Task, assignments, content_key, resource_text


@attrs.frozen
class _Part:
    """A part that a table of [framework] in the recipe names, with its place in the cache and its scripts."""

    table: str
    kind: str
    cache: str
    """Beginning of the key of its task, and its folder in the cache."""
    file: str
    """Path below the folder of one download, "" for the folder itself."""
    script: str
    check: str

    def path(self, run: Run[Any]) -> str:
        """Return the path of the downloaded part in the cache."""
        return f"{run.paths.cache}/{self.cache}/{content_key(run.settings[self.table]['url'])}{self.file}"

    def task(self, run: Run[Any]) -> Task:
        """Return the task that downloads the part."""
        settings: Mapping[str, Any] = run.settings[self.table]
        scripts = (resource_text(__package__, "profiler_download.sh"), resource_text(__package__, self.script))
        return Task(
            key=f"{self.cache}-{content_key(settings['url'])}",
            kind=self.kind,
            work="\n".join([assignments(url=settings["url"], result=self.path(run), kind=self.kind), *scripts]),
            check=f"{assignments(result=self.path(run))}\n{self.check}",
            space_gb=settings["space_gb"],
        )


PARTS = (
    _Part("nsys_release", "release of Nsight Systems", "nsys", "", "unpack_nsys.sh", '[ -e "$result/bin/nsys" ]'),
    _Part("cupti", "CUPTI library for nsys", "cupti", "/libcupti.so", "unpack_cupti.sh", '[ -s "$result" ]'),
)


def profiler_tasks(run: Run[Any]) -> tuple[Task, ...]:
    """Return the tasks that download the parts that the run needs."""
    return tuple(part.task(run) for part in _parts(run))


def profiler_mounts(run: Run[Any]) -> tuple[Mount, ...]:
    """Return the mounts of the parts that the run needs over those in the image."""
    return tuple(
        Mount(source=part.path(run), target=run.settings[part.table]["path"], read_only=True) for part in _parts(run)
    )


def _parts(run: Run[Any]) -> Iterator[_Part]:
    """Yield the parts of a run that is captured in the recipe's own image. Another image may have other paths."""
    if run.profile is not None and "workload.image" not in run.differences:
        yield from (part for part in PARTS if part.table in run.settings)
