"""Checks of recipes for ``llmb doctor``: those that can run on a target, and the reasons why others cannot."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from llmb.doctor_checks.planned_runs import check_job
from llmb.drive.secrets import missing_secrets
from llmb.drive.target_group import TargetGroup
from llmb.drive.task_jobs import tasks_without_secrets
from llmb.hookspecs import DoctorCheck
from llmb.planning import plan_run
from llmb.plugins.recipe_files import addresses_of
from llmb.plugins.registry import PluginRegistry
from llmb.spec.choose_point import example_points
from llmb.spec.expand_sweep import Combination
from llmb.spec.resolve_run import RunResolver
from llmb.values.errors import LlmbError
from llmb.values.recipe import Recipe
from llmb.values.run import Target
from llmb.values.workload import SourceMap

_NUMBER = re.compile(r"(?<![\w.:@-])[0-9]+(?![\w.:@-])")
"""A number that is a word of its own, and not a part of a version, a path or an image."""


@attrs.frozen
class RecipeChecks:
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
        if misfit := next((each.detail for each in check_job(planned, self.registry) if each.ok is False), ""):
            return misfit
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
    """Yield a workload for each GPU type and dtype of a recipe, with the smallest published number of GPUs.

    A recipe without published configurations has one workload for each of its dtypes, with one GPU.
    """
    least: dict[tuple[str, str], int] = {}
    for point in example_points(recipe):
        key = (point.gpu_type, point.dtype)
        least[key] = min(point.gpus, least.get(key, point.gpus))
    for (gpu_type, dtype), gpus in least.items():
        yield {"recipe": recipe.address, "gpu_type": gpu_type, "dtype": dtype, "gpus": gpus}
