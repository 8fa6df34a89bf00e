"""What `llmb doctor` tells: of this machine's records and plugins, of a target, and of what recipes need there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from llmb.drive.secrets import missing_secrets
from llmb.drive.target_group import TargetGroup
from llmb.drive.tasks import tasks_without_secrets
from llmb.hosts.disk_space import GB, NEAREST, free_space_gb
from llmb.hosts.open_hosts import Hosts
from llmb.paths import home_folder
from llmb.planning import plan_run
from llmb.plugins.list import list_plugins
from llmb.plugins.recipe_files import addresses_of
from llmb.plugins.registry import PluginRegistry
from llmb.spec.resolve import Resolver
from llmb.spec.targets import load_target, targets_file
from llmb.values.doctor_check import DoctorCheck
from llmb.values.errors import LlmbError, SpecError
from llmb.values.recipe import Recipe
from llmb.values.run import Target
from llmb.values.workload import SourceMap

_NUMBER = re.compile(r"[0-9]+")
ENOUGH_GB = 1.0  # of free space for records and logs


def doctor(name: str | None = None) -> tuple[DoctorCheck, ...]:
    """Look at a target of the targets file; without a name, at this machine through its schedulers of one node.

    Raises SpecError or PluginError where there is no such target, and TargetError where it cannot be reached.
    """
    pool = PluginRegistry()
    checks = [_records(), *_plugins()]
    if name is not None:
        return (*checks, *_target(*load_target({"name": name}, pool), pool))
    for scheduler in _single_node(pool):  # several may have the same to tell
        checks += [attrs.evolve(each, name=f"{scheduler}: {each.name}") for each in _this_machine(scheduler, pool)]
    return tuple(checks)


def _this_machine(scheduler: str, pool: PluginRegistry) -> Iterator[DoctorCheck]:
    """This machine through a scheduler; one that cannot be asked hides nothing of the others."""
    try:
        yield from _target(*load_target({"scheduler": scheduler}, pool), pool)
    except SpecError as error:
        remedy = f"make a target of it in {targets_file()}, and ask `llmb doctor NAME`"
        yield DoctorCheck(name="target", ok=None, detail="; ".join(map(str, error.faults)), remedy=remedy)
    except LlmbError as error:
        yield DoctorCheck(name="reachable", ok=False, detail="; ".join(map(str, error.faults)))


def _single_node(pool: PluginRegistry) -> Iterator[str]:
    for name in sorted({each.name for each in pool.installed if each.kind == "scheduler"}):
        try:
            if pool.scheduler(name).single_node:
                yield name
        except LlmbError:
            continue  # told among the plugins


def _records() -> DoctorCheck:
    """Whether the record of runs can be written."""
    folder = home_folder()
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not os.access(there, os.W_OK):
        return DoctorCheck(
            name="records", ok=False, detail=f"{folder} cannot be written", remedy="set LLMB_HOME to another folder"
        )
    free_gb = shutil.disk_usage(there).free / GB
    detail = f"{folder}, {free_gb:.0f} GB free"
    if free_gb < ENOUGH_GB:
        return DoctorCheck(name="records", ok=False, detail=detail, remedy=f"free at least {ENOUGH_GB:g} GB there")
    return DoctorCheck(name="records", ok=True, detail=detail)


def _plugins() -> list[DoctorCheck]:
    broken = [each for each in list_plugins() if each.error]
    if not broken:
        return [DoctorCheck(name="plugins", ok=True, detail="all that are installed work")]
    return [
        DoctorCheck(name=f"plugin {each.name}", ok=False, detail=each.error or "", remedy="install or remove it")
        for each in broken
    ]


def _target(target: Target[Any], table: Mapping[str, Any], pool: PluginRegistry) -> Iterator[DoctorCheck]:
    scheduler = pool.scheduler(target.scheduler)
    hosts = Hosts()
    try:
        site = TargetGroup(scheduler, hosts.open(target), [target])
        told = site.probe()
        target = site.with_facts(target)
        checks = [DoctorCheck(name="reachable", ok=True, detail=f"{site.name} answers")]
        checks += [DoctorCheck(name="probe", ok=False, detail=line) for line in told]
        checks += [_work_directory(site), *scheduler.checks(target=target, host=site.host)]
        yield from checks
        whole = all(check.ok is not False for check in checks)
        for framework in sorted({address.partition("/")[0] for address in addresses_of(pool.installed)}):
            yield _framework(framework, target, table, pool, site, whole=whole)
    finally:
        hosts.close()


def _work_directory(site: TargetGroup) -> DoctorCheck:
    """Whether the directory of all runs can be made and written, without making it."""
    workdir = site.workdir
    asked = f'folder={shlex.quote(workdir)}\n{NEAREST}\nprintf %s "$folder"; [ -d "$folder" ] && [ -w "$folder" ]'
    there = site.host.run(asked)
    if there.exit_code:
        remedy = "set target.workdir to a directory that you may write and that all nodes share"
        return DoctorCheck(name="work directory", ok=False, detail=f"{workdir} cannot be written", remedy=remedy)
    made = "" if there.stdout == workdir else f" will be made in {there.stdout}"
    free_gb = free_space_gb(workdir, site.host)
    return DoctorCheck(name="work directory", ok=True, detail=f"{workdir}{made}, {free_gb:.0f} GB free")


def _framework(
    framework: str,
    target: Target[Any],
    table: Mapping[str, Any],
    pool: PluginRegistry,
    site: TargetGroup,
    *,
    whole: bool,
) -> DoctorCheck:
    """Which of a framework's recipes could run there, and what the others lack; no fault of the target's.

    Where the target itself is not ``whole``, they could once it is.
    """
    names: dict[str, list[str]] = {}
    whys: dict[str, list[str]] = {}
    for address in addresses_of(pool.installed):
        if address.partition("/")[0] == framework:
            why = _missing(address, target, table, pool, site)
            alike = _NUMBER.sub("0", why)
            names.setdefault(alike, []).append(address.partition("/")[2])
            whys.setdefault(alike, []).append(why)
    can = names.pop("", [])
    once = "" if whole else ", once what is missing is there"
    parts = [f"can run here{once}: {', '.join(can)}" if can else "can run here: none"]
    parts += [f"{', '.join(those)} cannot: {_in_one(whys[alike])}" for alike, those in names.items()]
    return DoctorCheck(name=f"{framework} recipes", ok=True if can and whole else None, detail="; ".join(parts))


def _in_one(texts: Sequence[str]) -> str:
    """Texts that are alike but for their numbers, as one: ``asks for 8 to 128 GPUs``."""
    numbers = zip(*(map(int, _NUMBER.findall(text)) for text in texts), strict=True)
    ranges = (str(min(each)) if len(set(each)) == 1 else f"{min(each)} to {max(each)}" for each in numbers)
    return _NUMBER.sub(lambda _: next(ranges), texts[0])


def _missing(
    address: str, target: Target[Any], table: Mapping[str, Any], pool: PluginRegistry, site: TargetGroup
) -> str:
    """Why no published point of a recipe can run there; empty where one can."""
    try:
        recipe = pool.recipe(address)
    except LlmbError as error:
        return str(error.faults[0])
    whys = [_refusal(each, target, pool, site) for each in _smallest(recipe, table)]
    return "" if "" in whys else next(iter(whys), "it has no published points")


def _smallest(recipe: Recipe, table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A workload for each GPU type and dtype of a recipe, at its smallest published number of GPUs."""
    least: dict[tuple[str, str], int] = {}
    for point in recipe.points:
        key = (point.gpu_type, point.dtype)
        least[key] = min(point.gpus, least.get(key, point.gpus))
    for (gpu_type, dtype), gpus in least.items():
        workload = {"recipe": recipe.address, "gpu_type": gpu_type, "dtype": dtype, "gpus": gpus}
        yield {"workload": workload, "target": dict(table)}


def _refusal(tables: dict[str, Any], target: Target[Any], pool: PluginRegistry, site: TargetGroup) -> str:
    """What refuses a workload there: spec, framework, scheduler, or a secret that it or a task of it lacks."""
    found = Resolver(pool).resolve(tables, SourceMap())
    if found.faults:
        return found.faults[0].message
    placed = found.runs[0].with_run_id("doctor")
    placed = attrs.evolve(placed, target=attrs.evolve(placed.target, facts=target.facts))
    try:
        planned = plan_run(placed, pool)
    except LlmbError as error:
        return error.faults[0].message
    scripts = [planned.script, *(task.script for task in tasks_without_secrets(planned.tasks, site))]
    missing = dict.fromkeys(name for script in scripts for name in missing_secrets(script))
    return f"{', '.join(missing)} is not set in the environment of llmb" if missing else ""
