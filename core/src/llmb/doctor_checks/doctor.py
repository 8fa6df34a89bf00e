"""The checks of ``llmb doctor``: this machine, the target, and the recipes that can run on it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import attrs

from llmb.doctor_checks.planned_runs import check_workload
from llmb.doctor_checks.recipes import RecipeChecks
from llmb.doctor_checks.target import check_scheduler, one_line, opened_target, probe_target
from llmb.doctor_checks.this_machine import check_this_machine
from llmb.hookspecs import DoctorCheck
from llmb.paths import targets_file
from llmb.plugins.find_plugins import plugin_names
from llmb.plugins.registry import PluginRegistry
from llmb.spec.targets import load_target
from llmb.values.errors import LlmbError, SpecError, TargetError
from llmb.values.run import Target
from llmb.values.types.check_arguments import check_arguments
from llmb.values.workload import Workload


@check_arguments
def doctor(name: str | None = None, *, workload: Workload | None = None) -> tuple[DoctorCheck, ...]:
    """Check whether a workload would start on its targets; without a workload, which recipes can run on a target.

    ``name`` is a target of the targets file. By default, check this machine through every scheduler of one node. Raise
    SpecError or PluginError if the target, its scheduler or the workload is invalid, and TargetError if the target
    cannot be reached.
    """
    registry = PluginRegistry()
    checks = check_this_machine(registry)
    if workload is not None:
        return (*checks, *check_workload(workload, registry))
    if name is not None:
        return (*checks, *_check_target(*load_target({"name": name}, registry), registry))
    for scheduler in _single_node_schedulers(registry):
        checks += [
            attrs.evolve(each, name=f"{scheduler}: {each.name}") for each in _check_scheduler(scheduler, registry)
        ]
    return tuple(checks)


def _check_scheduler(scheduler: str, registry: PluginRegistry) -> Iterator[DoctorCheck]:
    """Check this machine through a scheduler. An error becomes a check, so that other schedulers are checked too."""
    try:
        yield from _check_target(*load_target({"scheduler": scheduler}, registry), registry)
    except SpecError as error:
        remedy = f"add a target with this scheduler to {targets_file()}, and run `llmb doctor NAME`"
        yield DoctorCheck(name="target", ok=None, detail=one_line(error), remedy=remedy)
    except LlmbError as error:
        name = "reachable" if isinstance(error, TargetError) else "plugin"
        yield DoctorCheck(name=name, ok=False, detail=one_line(error))


def _single_node_schedulers(registry: PluginRegistry) -> Iterator[str]:
    for name in plugin_names("scheduler", registry.installed):
        with suppress(LlmbError):  # `check_this_machine` reports the error
            if registry.scheduler(name).single_node:
                yield name


def _check_target(target: Target[Any], table: Mapping[str, Any], registry: PluginRegistry) -> Iterator[DoctorCheck]:
    with opened_target(target, registry) as group:
        checks = probe_target(group)
        target = group.with_facts(target)
        scheduler_checks = check_scheduler(group, target)
        yield from checks
        yield from scheduler_checks
        ready = _is_ready([*checks, *scheduler_checks])
        ready_without_images = ready or (
            _is_ready(checks) and _is_ready(check_scheduler(group, attrs.evolve(target, uses_images=False)))
        )
        yield from RecipeChecks(
            target, table, registry, group, ready=ready, ready_without_images=ready_without_images
        ).of_all_frameworks()


def _is_ready(checks: Iterable[DoctorCheck]) -> bool:
    return all(check.ok is not False for check in checks)
