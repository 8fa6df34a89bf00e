"""Find the published baseline of a run, and the keys in which the run differs from it."""

from collections.abc import Mapping
from typing import Any

import attrs

from llmb.spec.workload_tables import SpecTables
from llmb.values.copy_with_changes import with_changes
from llmb.values.profile_and_telemetry import Profile
from llmb.values.recipe import Point, Recipe
from llmb.values.run import Run


def with_baseline(run: Run[Any], recipe: Recipe, spec: SpecTables) -> Run[Any]:
    """Return the run with the baseline of its published point and with the keys in which it differs from that point."""
    point = recipe.find(run.gpu_type, run.dtype, run.gpus, variant=run.variant)
    baseline = point.baseline if point else None
    return with_changes(run, baseline=baseline, differences=_differences(run, recipe, point, spec))


def published_steps(recipe: Recipe, profile: Profile | None) -> int:
    """Return the published number of steps, which may be another one under a tool of [profile]."""
    return recipe.profile_steps.get(profile.tool, recipe.steps) if profile else recipe.steps


def _differences(run: Run[Any], recipe: Recipe, point: Point | None, spec: SpecTables) -> tuple[str, ...]:
    """Return the keys in which a run differs from its published point, so that the baseline does not apply."""
    if point is None and not recipe.points:  # nothing is published
        return ()
    if point is None:
        published = any(run.gpu_type == each.gpu_type for each in recipe.points)
        return ("workload.gpus" if published else "workload.gpu_type",)
    changed = [f"parallelism.{name}" for name in _changed_fields(run.parallelism, point.parallelism)]
    changed += [f"model.{name}" for name in _changed_fields(run.architecture, point.model)]
    changed += ["model.seq_len"] if run.architecture is None and run.seq_len != point.seq_len else []
    changed += ["workload.image"] if run.image != recipe.image else []
    changed += ["measure.window"] if run.window != recipe.window else []
    changed += [f"framework.{name}" for name in _changed_options(run.options, point.options)]
    changed += ["workload.steps"] if _warms_up_less(run, recipe) else []
    changed += [f"env.{name}" for name in spec.env]
    changed += [f'mounts."{mount.source}"' for mount in run.mounts]
    changed += ["target.gpus_per_node"] if _has_other_nodes(run) else []
    return tuple(changed)


def _warms_up_less(run: Run[Any], recipe: Recipe) -> bool:
    """Check whether the measured last step comes earlier than the publisher's. A later step is as warm."""
    return run.window == "last" and run.steps < published_steps(recipe, run.profile)


def _has_other_nodes(run: Run[Any]) -> bool:
    """Check whether the nodes have another size than the nodes of the GPU type, which were measured.

    A GPU type without a peak in the table (a CPU) may be any machine.
    """
    usual = min(run.accelerator.gpus_per_node, run.gpus)  # a part of one node is allowed
    return bool(run.accelerator.peak_flops) and run.gpus_per_node != usual


def _changed_fields(value: Any, published: Any) -> list[str]:
    if value is None:  # a recipe without an architecture
        return []
    fields = [field.name for field in attrs.fields(type(value))]
    return [name for name in fields if getattr(value, name) != getattr(published, name)]


def _changed_options(options: Any, published: Mapping[str, Any]) -> list[str]:
    """Return the options that differ from their defaults; an option without a default always does.

    An option with ``metadata={"comparable": True}`` does not count: it does not affect what is measured. Nor does an
    option that selects the point, with its ``published`` value.
    """
    fields = [field for field in attrs.fields(type(options)) if not field.metadata.get("comparable")]
    usual = {field.name: (_default(field, options), published.get(field.name)) for field in fields}
    return [name for name, values in usual.items() if getattr(options, name) not in values]


def _default(field: Any, options: Any) -> Any:
    default = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # attrs types the class as a function
        return default.factory(options) if default.takes_self else default.factory()
    return default
