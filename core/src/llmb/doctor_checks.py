"""The checks of ``llmb doctor``: records, plugins, the target, and the recipes that can run on it."""

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from llmb.drive.secrets import missing_secrets
from llmb.drive.target_group import TargetGroup
from llmb.drive.task_jobs import tasks_without_secrets
from llmb.hookspecs import DoctorCheck
from llmb.hosts.disk_space import EXISTING_PARENT, GB, free_space_gb
from llmb.hosts.host_connections import HostConnections
from llmb.paths import home_folder
from llmb.planning import plan_run
from llmb.plugins.recipe_files import addresses_of
from llmb.plugins.registry import PluginRegistry
from llmb.spec.expand_sweep import Combination
from llmb.spec.resolve_run import RunResolver
from llmb.spec.targets import load_target, targets_file
from llmb.values.errors import LlmbError, PluginError, SpecError, TargetError
from llmb.values.recipe import Recipe
from llmb.values.run import Target
from llmb.values.workload import SourceMap

_NUMBER = re.compile(r"[0-9]+")

LEAST_FREE_GB = 1.0
"""Free disk space that records and logs need."""


def doctor(name: str | None = None) -> tuple[DoctorCheck, ...]:
    """Check a target of the targets file, or by default this machine through every scheduler of one node.

    Raise SpecError or PluginError if the target or its scheduler does not exist, and TargetError if the target cannot
    be reached.
    """
    registry = PluginRegistry()
    checks = [_check_records(), *_check_plugins(registry)]
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
        yield DoctorCheck(name="target", ok=None, detail=_one_line(error), remedy=remedy)
    except LlmbError as error:
        name = "reachable" if isinstance(error, TargetError) else "plugin"
        yield DoctorCheck(name=name, ok=False, detail=_one_line(error))


def _one_line(error: LlmbError) -> str:
    return "; ".join(map(str, error.faults))


def _single_node_schedulers(registry: PluginRegistry) -> Iterator[str]:
    for name in sorted({each.name for each in registry.installed if each.kind == "scheduler"}):
        try:
            if registry.scheduler(name).single_node:
                yield name
        except LlmbError:
            continue  # `_check_plugins` reports the error


def _check_records() -> DoctorCheck:
    """Check whether runs can be recorded."""
    folder = home_folder()
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    if not os.access(nearest, os.W_OK):
        return DoctorCheck(
            name="records", ok=False, detail=f"cannot write {folder}", remedy="set LLMB_HOME to another folder"
        )
    free_gb = shutil.disk_usage(nearest).free / GB
    detail = f"{folder}, {free_gb:.0f} GB free"
    if free_gb < LEAST_FREE_GB:
        return DoctorCheck(name="records", ok=False, detail=detail, remedy=f"free at least {LEAST_FREE_GB:g} GB")
    return DoctorCheck(name="records", ok=True, detail=detail)


def _check_plugins(registry: PluginRegistry) -> list[DoctorCheck]:
    plugins = registry.plugins()
    broken = [
        DoctorCheck(name=f"plugin {each.name}", ok=False, detail=each.error, remedy="upgrade or uninstall the plugin")
        for each in plugins
        if each.error
    ]
    return broken or [DoctorCheck(name="plugins", ok=True, detail=f"{len(plugins)} installed, no errors")]


def _check_target(target: Target[Any], table: Mapping[str, Any], registry: PluginRegistry) -> Iterator[DoctorCheck]:
    scheduler = registry.scheduler(target.scheduler)
    hosts = HostConnections()
    try:
        group = TargetGroup(scheduler, hosts.open(target), [target])
        warnings = group.probe()
        target = group.with_facts(target)
        checks = [DoctorCheck(name="reachable", ok=True, detail=group.name)]
        checks += [DoctorCheck(name="probe", ok=False, detail=line) for line in warnings]
        checks.append(_check_work_directory(group))
        try:
            checks += scheduler.checks(target=target, host=group.host)
        except PluginError as error:
            checks.append(DoctorCheck(name="plugin", ok=False, detail=_one_line(error)))
        yield from checks
        ready = all(check.ok is not False for check in checks)
        yield from _RecipeChecks(target, table, registry, group).of_all_frameworks(ready=ready)
    finally:
        hosts.close()


def _check_work_directory(group: TargetGroup) -> DoctorCheck:
    """Check whether the directory of all runs can be created and written, without creating it."""
    workdir = group.workdir
    script = (
        f'folder={shlex.quote(workdir)}\n{EXISTING_PARENT}\nprintf %s "$folder"; [ -d "$folder" ] && [ -w "$folder" ]'
    )
    found = group.host.run(script)
    if found.exit_code:
        remedy = "set target.workdir to a directory that you can write and that all nodes share"
        return DoctorCheck(name="work directory", ok=False, detail=f"cannot write {workdir}", remedy=remedy)
    created = "" if found.stdout == workdir else f" will be created in {found.stdout}"
    free_gb = free_space_gb(workdir, group.host)
    return DoctorCheck(name="work directory", ok=True, detail=f"{workdir}{created}, {free_gb:.0f} GB free")


@attrs.frozen
class _RecipeChecks:
    """The checks of recipes on a target, whose [target] table is ``table``."""

    target: Target[Any]
    table: Mapping[str, Any]
    registry: PluginRegistry
    group: TargetGroup

    def of_all_frameworks(self, *, ready: bool) -> Iterator[DoctorCheck]:
        """Yield a check for each installed framework. If the target is not ``ready``, recipes are available later."""
        addresses = [address.partition("/") for address in addresses_of(self.registry.installed)]
        for framework in sorted({framework for framework, _, _ in addresses}):
            names = [name for owner, _, name in addresses if owner == framework]
            yield self._of_framework(framework, names, ready=ready)

    def _of_framework(self, framework: str, names: Iterable[str], *, ready: bool) -> DoctorCheck:
        """List the recipes that can run on the target, and the reasons why others cannot.

        An unavailable recipe is not an error of the target. Reasons that differ only in their numbers are merged.
        """
        groups: dict[str, list[str]] = {}
        reasons: dict[str, list[str]] = {}
        for name in names:
            reason = self._obstacle(f"{framework}/{name}")
            groups.setdefault(_NUMBER.sub("0", reason), []).append(name)
            reasons.setdefault(_NUMBER.sub("0", reason), []).append(reason)
        available = groups.pop("", [])
        parts = [f"available{'' if ready else ' once the target is fixed'}: {', '.join(available) or 'none'}"]
        parts += [f"unavailable: {', '.join(group)} ({_merged(reasons[key])})" for key, group in groups.items()]
        ok = True if available and ready else None
        return DoctorCheck(name=f"{framework} recipes", ok=ok, detail="; ".join(parts))

    def _obstacle(self, address: str) -> str:
        """Return why no published configuration of a recipe can run on the target, or "" if one can."""
        try:
            recipe = self.registry.recipe(address)
        except LlmbError as error:
            return str(error.faults[0])
        obstacles = [self._workload_obstacle(workload) for workload in _smallest_workloads(recipe)]
        return "" if "" in obstacles else next(iter(obstacles), "it has no published configuration")

    def _workload_obstacle(self, workload: dict[str, Any]) -> str:
        """Return the first error of a workload on the target, or the secrets that it or one of its tasks lacks."""
        combination = Combination({"workload": workload, "target": dict(self.table)}, SourceMap())
        runs, errors = RunResolver(self.registry).resolve(combination)
        if errors:
            return errors[0].message
        spec = runs[0].with_run_id("doctor")
        spec = attrs.evolve(spec, target=attrs.evolve(spec.target, facts=self.target.facts))
        try:
            planned = plan_run(spec, self.registry)
        except LlmbError as error:
            return error.faults[0].message
        tasks = tasks_without_secrets(planned.tasks, self.group)
        scripts = [planned.script, *(task.script for task in tasks)]
        missing = dict.fromkeys(name for script in scripts for name in missing_secrets(script))
        return f"{', '.join(missing)} is not set in the environment of llmb" if missing else ""


def _merged(texts: Sequence[str]) -> str:
    """Merge texts that differ only in their numbers: ``needs 8 to 128 GPUs``."""
    numbers = zip(*(map(int, _NUMBER.findall(text)) for text in texts), strict=True)
    ranges = (str(min(each)) if len(set(each)) == 1 else f"{min(each)} to {max(each)}" for each in numbers)
    return _NUMBER.sub(lambda _: next(ranges), texts[0])


def _smallest_workloads(recipe: Recipe) -> Iterator[dict[str, Any]]:
    """Yield a workload for each GPU type and dtype of a recipe, with the smallest published number of GPUs."""
    least: dict[tuple[str, str], int] = {}
    for point in recipe.points:
        key = (point.gpu_type, point.dtype)
        least[key] = min(point.gpus, least.get(key, point.gpus))
    for (gpu_type, dtype), gpus in least.items():
        yield {"recipe": recipe.address, "gpu_type": gpu_type, "dtype": dtype, "gpus": gpus}
