"""The published counterpart of a recorded run, to list the settings in which the run differs."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from llmb.paths import runs_folder
from llmb.plugins.addresses import address_in
from llmb.plugins.registry import PluginRegistry
from llmb.spec.spec_of_run import read_run_toml
from llmb.values.env_and_mounts_of_target import with_target_differences
from llmb.values.frozen import FrozenMap, table_of
from llmb.values.job import Job
from llmb.values.workload import RunSpec


def published_spec(run_id: str, recorded: Mapping[str, Any], registry: PluginRegistry) -> dict[str, Any]:
    """Return the recorded spec of a run with the published values of all keys in which it differs from its recipe.

    Raise RecordError or PluginError.
    """
    spec = {name: dict(table) if isinstance(table, dict) else table for name, table in recorded.items()}
    spec.pop("profile", None)
    run_spec = read_run_toml(runs_folder() / run_id / "run.toml", registry)
    imported = run_spec.run
    framework = registry.framework(imported.framework)
    recipe = registry.recipe(address_in(imported.framework, imported.recipe))
    point = recipe.find(imported.gpu_type, imported.dtype, imported.gpus, variant=imported.variant)

    @functools.cache
    def job() -> Job:
        return framework.build_job(run=attrs.evolve(imported, env=FrozenMap()))

    published: dict[str, Callable[[str], Any]] = {
        "parallelism": lambda key: getattr(point.parallelism, key, None) if point else None,
        "model": lambda key: getattr(point.model, key, None) if point else None,
        "workload": lambda key: recipe.image.ref if key == "image" and recipe.image else getattr(recipe, key, None),
        "measure": lambda key: getattr(recipe, key, None),
        "target": lambda _key: min(imported.accelerator.gpus_per_node, imported.gpus),
        "env": lambda key: job().env.get(key),
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
    if run_spec.target.env or run_spec.target.mounts:
        spec["target"] = _published_target(spec["target"], run_spec, job())
    return {**spec, "provenance": {**spec.get("provenance", {}), "env": job_env}}


def _published_target(recorded: Mapping[str, Any], spec: RunSpec, job: Job) -> dict[str, Any]:
    """Return a recorded [target] with the published values of the settings that it replaces."""
    tables = {name: dict(table_of(recorded, name)) for name in ("env", "mounts")}
    for dotted in with_target_differences(attrs.evolve(spec.run, differences=()), spec.target, job).differences:
        _, table, quoted = dotted.split(".", 2)
        key = quoted.strip('"')
        del tables[table][key]
        if table == "env" and key in job.env:
            tables[table][key] = job.env[key]
    return {**recorded, **tables}
