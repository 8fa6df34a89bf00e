"""Checks of a target for ``llmb doctor``: its host, its work directory, and what its scheduler checks."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import attrs

from llmb.doctor_checks.work_directory import check_work_directory
from llmb.drive.target_group import TargetGroup
from llmb.hookspecs import DoctorCheck
from llmb.hosts.host_connections import HostConnections
from llmb.plugins.registry import PluginRegistry
from llmb.values.errors import LlmbError, PluginError
from llmb.values.job import Script
from llmb.values.run import Target


@contextmanager
def opened_target(target: Target[Any], registry: PluginRegistry) -> Iterator[TargetGroup]:
    """Connect to a target for the complete probe of its scheduler, which runs leave out. Raise TargetError."""
    complete = attrs.evolve(target, gpu_types=())
    with closing(HostConnections()) as hosts:
        yield TargetGroup(registry.scheduler(target.scheduler), hosts.open(complete), [complete])


def probe_target(group: TargetGroup) -> list[DoctorCheck]:
    """Probe a target, and return the checks of its host and its work directory. Raise TargetError."""
    warnings = group.probe()
    checks = [DoctorCheck(name="reachable", ok=True, detail=group.name)]
    checks += [DoctorCheck(name="probe", ok=False, detail=line) for line in warnings]
    return [*checks, check_work_directory(group)]


def check_scheduler(group: TargetGroup, target: Target[Any], scripts: Sequence[Script] = ()) -> list[DoctorCheck]:
    """Return the scheduler's checks of a target with facts. ``scripts`` are the jobs to submit there, if known."""
    try:
        return list(group.scheduler.checks(target=target, host=group.host, scripts=scripts))
    except PluginError as error:
        return [DoctorCheck(name="plugin", ok=False, detail=one_line(error))]


def one_line(error: LlmbError) -> str:
    """Return all errors in one line."""
    return "; ".join(map(str, error.faults))
