"""The published counterpart of a recorded run, to list the settings in which the run differs."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from llmb.paths import runs_folder
from llmb.plugins.addresses import address_in
from llmb.plugins.registry import PluginRegistry
from llmb.spec.spec_of_run import read_run_toml
from llmb.values.frozen import FrozenMap, table_of


def published_spec(run_id: str, recorded: Mapping[str, Any], registry: PluginRegistry) -> dict[str, Any]:
    """Return the recorded spec of a run with the published values of all keys in which it differs from its recipe.

    Raise RecordError or PluginError.
    """
    spec = {name: dict(table) if isinstance(table, dict) else table for name, table in recorded.items()}
    spec.pop("profile", None)
    imported = read_run_toml(runs_folder() / run_id / "run.toml", registry).run
    framework = registry.framework(imported.framework)
    recipe = registry.recipe(address_in(imported.framework, imported.recipe))
    point = recipe.find(imported.gpu_type, imported.dtype, imported.gpus, variant=imported.variant)
    published: dict[str, Callable[[str], Any]] = {
        "parallelism": lambda key: getattr(point.parallelism, key, None) if point else None,
        "model": lambda key: getattr(point.model, key, None) if point else None,
        "workload": lambda key: recipe.image.ref if key == "image" and recipe.image else getattr(recipe, key, None),
        "measure": lambda key: getattr(recipe, key, None),
        "target": lambda _key: min(imported.accelerator.gpus_per_node, imported.gpus),
        "env": lambda key: framework.build_job(run=attrs.evolve(imported, env=FrozenMap())).env.get(key),
    }
    job_env = dict(table_of(spec.get("provenance", {}), "env"))
    for dotted in imported.differences:
        table, _, quoted = dotted.partition(".")
        key = quoted.strip('"')
        value = published[table](key) if table in published else None
        target = spec.setdefault(table, {})
        target.pop(key, None)
        if table == "env":  # the job reports the variables of the spec too
            job_env.pop(key, None)
        if value is not None:
            target[key] = value
    return {**spec, "provenance": {**spec.get("provenance", {}), "env": job_env}}
