"""Checks of recipes for ``llmb doctor``: those that can run on a target, and the reasons why others cannot."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from llmb.doctor_checks.planned_runs import check_job
from llmb.drive.secrets import missing_secrets
from llmb.drive.shared_tasks.task_jobs import tasks_without_secrets
from llmb.drive.target_group import TargetGroup
from llmb.hookspecs import DoctorCheck
from llmb.plan_runs import plan_run
from llmb.plugins.recipe_files import addresses_of
from llmb.plugins.registry import PluginRegistry
from llmb.spec.choose_published_point import example_points
from llmb.spec.expand_sweep import Combination
from llmb.spec.resolve_run import RunResolver
from llmb.values.errors import LlmbError
from llmb.values.recipe import Recipe
from llmb.values.run import Target
from llmb.values.workload import SourceMap

_NUMBER = re.compile(r"(?<![\w.:@-])[0-9]+(?![\w.:@-])")
"""A number that is a word of its own, and not a part of a version, a path or an image."""

GPU_TYPE_KEY = "workload.gpu_type"
"""The key of an error of planning if the target has GPUs of another type."""

GPU_TYPE_CHECK = "GPU type"
"""The name of a scheduler's failed check of a job if the target has GPUs of another type."""


@attrs.frozen(kw_only=True)
class PlanningResult:
    """Result of planning a workload of a recipe on the target. ``reason`` is why it could not run there, or "".

    ``uses_images`` is True if its job needs a container. ``wrong_type`` is True if the target has GPUs of another type.
    """

    gpu_type: str
    reason: str = ""
    uses_images: bool = False
    wrong_type: bool = False


@attrs.frozen
class RecipeChecks:
    """The checks of recipes on a target, whose [target] table is ``table``.

    Runs could start now if the target is ``ready``; those without an image if it is ``ready_without_images``.
    """

    target: Target[Any]
    table: Mapping[str, Any]
    registry: PluginRegistry
    group: TargetGroup
    ready: bool
    ready_without_images: bool

    def of_all_frameworks(self) -> Iterator[DoctorCheck]:
        """Yield a check for each installed framework."""
        addresses = [address.partition("/") for address in addresses_of(self.registry.installed)]
        for framework in sorted({framework for framework, _, _ in addresses}):
            names = [name for owner, _, name in addresses if owner == framework]
            yield self._of_framework(framework, names)

    def _of_framework(self, framework: str, names: Iterable[str]) -> DoctorCheck:
        """List the recipes that can run on the target, and the reasons why others cannot.

        An unavailable recipe is not an error of the target. Reasons that differ only in their numbers are merged.
        """
        available: list[str] = []
        later: list[str] = []
        groups: dict[str, dict[str, str]] = {}  # by a reason without its numbers: the reason of each recipe
        for name in names:
            reason, images = self._try(f"{framework}/{name}")
            if not reason:
                is_ready = self.ready if images else self.ready_without_images
                (available if is_ready else later).append(name)
                continue
            groups.setdefault(_NUMBER.sub("0", reason), {})[name] = reason
        parts = [f"available: {', '.join(available) or 'none'}"] if available or not later else []
        parts += [f"available once the target is fixed: {', '.join(later)}"] if later else []
        parts += [f"unavailable: {', '.join(group)} ({_merged([*group.values()])})" for group in groups.values()]
        return DoctorCheck(name=f"{framework} recipes", ok=True if available else None, detail="; ".join(parts))

    def _try(self, address: str) -> tuple[str, bool]:
        """Return why no published configuration of a recipe can run on the target, or "", and if it needs an image."""
        try:
            recipe = self.registry.recipe(address)
            self.registry.check_settings(recipe.framework, address)
        except LlmbError as error:
            return str(error.faults[0]), False
        results = [self._try_workload(workload) for workload in _smallest_workloads(recipe)]
        fitting = [result for result in results if not result.reason]
        if fitting:
            return "", all(result.uses_images for result in fitting)
        of_own_type = [result for result in results if not result.wrong_type]
        if of_own_type or not results:
            return (of_own_type[0].reason if of_own_type else "it has no published configuration"), False
        types = ", ".join(dict.fromkeys(result.gpu_type for result in results))
        return f"published for {types}: {results[0].reason}", False

    def _try_workload(self, workload: dict[str, Any]) -> PlanningResult:
        """Return the first error of a workload on the target, or the secrets that it or one of its tasks lacks."""
        gpu_type = workload["gpu_type"]
        combination = Combination({"workload": workload, "target": dict(self.table)}, SourceMap())
        runs, errors = RunResolver(self.registry).resolve(combination)
        if errors:
            return PlanningResult(gpu_type=gpu_type, reason=errors[0].message)
        spec = runs[0].with_run_id("doctor")
        spec = attrs.evolve(spec, target=attrs.evolve(spec.target, facts=self.target.facts))
        try:
            planned = plan_run(spec, self.registry)
        except LlmbError as error:
            fault = error.faults[0]
            return PlanningResult(gpu_type=gpu_type, reason=fault.message, wrong_type=fault.key == GPU_TYPE_KEY)
        if misfit := next((each for each in check_job(planned, self.registry) if each.ok is False), None):
            return PlanningResult(gpu_type=gpu_type, reason=misfit.detail, wrong_type=misfit.name == GPU_TYPE_CHECK)
        tasks = tasks_without_secrets(planned.tasks, self.group)
        scripts = [planned.script, *(task.script for task in tasks)]
        missing = dict.fromkeys(name for script in scripts for name in missing_secrets(script))
        lacking = f"{', '.join(missing)} is not set in the environment of llmb" if missing else ""
        return PlanningResult(gpu_type=gpu_type, reason=lacking, uses_images=planned.uses_images)


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
