"""Export a run as a spec of its own, with every default written out, and import it again from its record."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from llmb.plugins.registry import PluginRegistry
from llmb.spec.resolve import resolve
from llmb.spec.run_ids import draw_run_ids
from llmb.spec.spec_tables import Document, string_of
from llmb.spec.targets import with_any_target
from llmb.spec.workload_tables import MeasureTable, ModelTable, ParallelismTable, TargetTable, WorkloadTable
from llmb.values.errors import RecordError, SpecError
from llmb.values.frozen import table_of
from llmb.values.job import Mount
from llmb.values.run import Run, Target
from llmb.values.toml_files import read_toml
from llmb.values.types.check_types import encode
from llmb.values.types.value_type import InvalidValueError
from llmb.values.workload import RunSpec


def build_run_toml(spec: RunSpec, provenance: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of ``run.toml``. Parts of its [provenance] are for `read_run_toml`, the rest is for users."""
    run, target = spec.run, spec.target
    tables: dict[str, Any] = {
        "workload": {**_named(run, WorkloadTable), "time_limit": run.time_limit_s},
        "parallelism": {"vp": 1, **_named(run.parallelism, ParallelismTable)},  # TOML has no null: 1 is off
        "model": {**_named(run.architecture, ModelTable), "seq_len": run.seq_len},
        "framework": encode(run.options),
        "env": dict(run.env),
        "mounts": _mounts(run.mounts),
        "measure": _named(run, MeasureTable),
        "target": _target(target),
        "provenance": {**provenance, "run_id": run.id, "repeat": run.repeat},
        "profile": encode(run.profile),
        "telemetry": encode(run.telemetry),
    }
    if run.image:
        tables["workload"]["image"] = run.image.ref
    if spec.repeats > 1:
        tables["provenance"]["repeats"] = spec.repeats
    if spec.swept:
        tables["provenance"]["sweep"] = encode(spec.swept)
    if spec.recipe_copy:
        tables["workload"]["recipe"] = spec.recipe_copy.address
        tables["provenance"]["recipe"] = run.recipe
    return {name: table for name, table in tables.items() if table}


def read_run_toml(file: Path, registry: PluginRegistry) -> RunSpec:
    """Return the run of a record, under its own id. Raise RecordError, SpecError or PluginError."""
    tables = read_toml(file)
    provenance, run_id = table_of(tables, "provenance"), string_of(tables, "provenance", "run_id")
    if is_imported := "imported" in provenance:
        tables = with_any_target(tables, registry)
    if run_id is None:
        raise RecordError(f"{file} is not the record of a run: provenance.run_id is missing")
    workload, errors = resolve(Document(str(file), tables), registry, any_target=is_imported)
    if errors:
        raise SpecError(*errors)
    [spec] = workload.runs
    try:
        run = attrs.evolve(spec.run, repeat=provenance.get("repeat", 1))
        spec = attrs.evolve(spec, run=run, repeats=provenance.get("repeats", 1), swept=provenance.get("sweep", {}))
    except InvalidValueError as error:
        raise RecordError(f"{file} is damaged: [provenance]: {error}") from None
    return spec.with_run_id(run_id)


def export_imported_run(
    tables: Mapping[str, Any], provenance: Mapping[str, Any], repeat: int, registry: PluginRegistry
) -> tuple[str, dict[str, Any], Mapping[str, str]]:
    """Return a new run id, and the tables of run.toml for a run that llmb did not start and whose target is unknown.

    Return also the texts of the files that the record keeps, by path. Raise SpecError for an invalid spec.
    """
    workload, errors = resolve(Document(None, with_any_target(tables, registry)), registry, any_target=True)
    if errors:
        raise SpecError(*errors)
    [spec] = draw_run_ids(workload).runs
    spec = attrs.evolve(spec, run=attrs.evolve(spec.run, repeat=repeat))
    exported = build_run_toml(spec, dict(provenance))
    del exported["target"]
    return spec.run.id, exported, spec.recipe_copy.files if spec.recipe_copy else {}


def _target(target: Target[Any]) -> dict[str, Any]:
    """Return the table of the target, with [target.env] and [target.mounts] only if they have keys."""
    table = {**_named(target, TargetTable), **encode(target.options), "mounts": _mounts(target.mounts)}
    return {key: value for key, value in table.items() if key not in ("env", "mounts", "secrets") or value}


def _mounts(mounts: Iterable[Mount]) -> dict[str, str]:
    return {mount.source: mount.target + (":ro" if mount.read_only else "") for mount in mounts}


def _named(value: Run[Any] | Target[Any] | Any, table: type[Any]) -> dict[str, Any]:
    """Return the fields of ``value`` that are keys of ``table``, without those that are None."""
    names = [field.name for field in attrs.fields(table) if hasattr(value, field.name)]
    return {name: encode(getattr(value, name)) for name in names if getattr(value, name) is not None}
