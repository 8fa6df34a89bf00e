"""Runs for the tests of a framework: of its recipes or of given tables, and the values that its hooks return."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from llmb.api import load
from llmb.plan_runs import RunPlan, plan
from llmb.plugins.registry import PluginRegistry
from llmb.recipes.accelerators import accelerators
from llmb.testing.any_scheduler import TARGET_TABLE, ContractRegistry
from llmb.testing.baseline_checks import describe_point
from llmb.values.environment import Environment
from llmb.values.errors import Fault, SpecError
from llmb.values.job import Dataset, Job
from llmb.values.recipe import Point, Recipe
from llmb.values.run import Paths, Run
from llmb.values.workload import RunSpec

ALL_POINTS = "LLMB_ALL_POINTS"
"""The variable with which the tests build the jobs of all published configurations, instead of some of each recipe."""

POINTS_PER_RECIPE = 3

PATHS = Paths(run="/w/runs/contract", cache="/w/cache")

Tables = Mapping[str, Mapping[str, Any]]


@attrs.frozen
class HookResults:
    """The values that the hooks of a framework return for a run. They are equal if they are so for another run."""

    run: Run[Any] = attrs.field(eq=False)
    environment: Environment
    dataset: Dataset | None
    job: Job


def sample_tables(recipes: Iterable[Recipe]) -> list[Tables]:
    """Return specs of published configurations, spread over each recipe."""
    return [tables for recipe in recipes for tables in _tables_of(recipe)]


def _tables_of(recipe: Recipe) -> Iterator[Tables]:
    """Yield specs of some points of a recipe. A recipe without [[points]] runs on one node of any GPU type."""
    for point in _sample(recipe.points):
        variant = {"variant": point.variant} if point.variant else {}
        yield _tables(recipe, point.gpu_type, point.dtype, point.gpus, **variant)
    for gpu_type in () if recipe.points else accelerators().values():
        if recipe.dtypes[0] in gpu_type.dtypes:
            yield _tables(recipe, gpu_type.name, recipe.dtypes[0], gpu_type.gpus_per_node)
            return


def _sample(points: Sequence[Point]) -> Sequence[Point]:
    if os.environ.get(ALL_POINTS) or len(points) <= POINTS_PER_RECIPE:
        return points
    last = len(points) - 1
    return [points[index * last // (POINTS_PER_RECIPE - 1)] for index in range(POINTS_PER_RECIPE)]


def _tables(recipe: Recipe, gpu_type: str, dtype: str, gpus: int, **more: str) -> Tables:
    workload = {"recipe": recipe.address, "gpu_type": gpu_type, "dtype": dtype, "gpus": gpus, **more}
    return {"workload": workload, "target": TARGET_TABLE}


def with_key(tables: Tables, key: str, value: Any) -> Tables:
    """Return a spec with one more key."""
    table, _, name = key.partition(".")
    return {**tables, table: {**tables.get(table, {}), name: value}}


def load_run(registry: PluginRegistry, tables: Tables) -> RunSpec:
    """Return the run of a spec, with a fixed id. Raise SpecError if core rejects the spec."""
    [spec] = load(tables, registry=registry).runs
    return attrs.evolve(spec, run=attrs.evolve(spec.run, id="contract", paths=PATHS))


def plan_tables(tables: Mapping[str, Mapping[str, Any]]) -> RunPlan:
    """Return the plan of a spec with one run. A scheduler that accepts every job replaces the table [target].

    Raise SpecError with the errors of the spec, or if lists make several runs of it.
    """
    registry = ContractRegistry()
    workload = load({**tables, "target": TARGET_TABLE}, registry=registry)
    if (count := len(workload.runs)) != 1:
        raise SpecError(Fault(message=f"the tables make {count} runs", expected="one value instead of each list"))
    [run] = plan(workload, registry=registry)
    return run


def build(registry: PluginRegistry, run: Run[Any]) -> HookResults:
    """Call the hooks of the run's framework. Raise SpecError or PluginError."""
    framework = registry.framework(run.framework)
    environment = framework.prepare_env(run=run)
    return HookResults(run, environment, framework.prepare_dataset(run=run), framework.build_job(run=run))


def describe(run: Run[Any]) -> str:
    """Return the configuration of a run for messages."""
    return describe_point(run.recipe, run)
