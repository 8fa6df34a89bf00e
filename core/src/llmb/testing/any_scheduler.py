"""A scheduler for contract tests: it accepts every job and runs none."""

import functools
from collections.abc import Mapping, Sequence

import attrs

from llmb.hookspecs import SchedulerHooks, hookimpl
from llmb.plugins.find_plugins import PluginEntry, find_plugins
from llmb.plugins.registry import PluginRegistry
from llmb.values.frozen import FrozenMap
from llmb.values.host import Host
from llmb.values.job import Job, Script
from llmb.values.job_status import JobHandle, JobStatus
from llmb.values.run import Target
from llmb.version import VERSION

NAME = "contract"

TARGET_TABLE = {"scheduler": NAME, "workdir": "/w"}
"""The table [target] of contract tests."""


@attrs.frozen
class NoOptions:
    """The scheduler has no keys of its own."""


class AnyScheduler(SchedulerHooks[NoOptions]):
    """Scheduler that builds an empty script for any job."""

    options = NoOptions

    @hookimpl
    def build_job(self, job: Job, target: Target[NoOptions]) -> Script:
        """Return a script that does nothing."""
        logs = FrozenMap({phase.name: (f"{job.directory}/{phase.name}.log",) for phase in job.phases})
        return Script(id=job.id, directory=job.directory, text="true", logs=logs)

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Submit nothing."""
        return {}

    @hookimpl
    def poll(self, handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
        """Return no status."""
        return {}

    @hookimpl
    def cancel(self, handles: Sequence[JobHandle], host: Host) -> None:
        """Cancel nothing."""


class ContractRegistry(PluginRegistry):
    """The installed plugins and the scheduler of contract tests."""

    @functools.cached_property
    def installed(self) -> Sequence[PluginEntry]:
        """The installed plugins, searched once, and the scheduler."""
        value = f"{__name__}:{AnyScheduler.__name__}"
        entry = PluginEntry(name=NAME, kind="scheduler", value=value, distribution="llmb", version=VERSION)
        return (*find_plugins(), entry)
