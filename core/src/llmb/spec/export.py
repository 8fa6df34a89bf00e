"""A run as a spec of its own, with every default written out: what its record keeps, and what runs it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from llmb.plugins.registry import PluginRegistry
from llmb.spec.load import resolve_document
from llmb.spec.read import Document, read_toml
from llmb.spec.structure import unstructure
from llmb.spec.tables import MeasureTable, ModelTable, ParallelismTable, TargetTable, WorkloadTable
from llmb.values.errors import RecordError
from llmb.values.frozen import thaw
from llmb.values.run import Run, Target
from llmb.values.workload import RunSpec


def export_run(placed: RunSpec, provenance: dict[str, Any]) -> str:
    """The text of ``run.toml``; ``provenance`` is kept for people; some of it is for `import_run`."""
    import tomli_w  # not needed to read a spec

    run, target = placed.run, placed.target
    tables: dict[str, Any] = {
        "workload": _workload(run),
        "parallelism": _parallelism(run),
        "model": _named(run.model, ModelTable),
        "framework": unstructure(run.options),
        "env": dict(run.env),
        "mounts": {each.source: each.target + (":ro" if each.read_only else "") for each in run.mounts},
        "measure": _named(run, MeasureTable),
        "target": {**_named(target, TargetTable), **unstructure(target.options)},
        "provenance": {**provenance, "run_id": run.id, "repeat": run.repeat, **_of_sweep(placed)},
    }
    if run.profile:
        tables["profile"] = unstructure(run.profile)
    return tomli_w.dumps({name: table for name, table in tables.items() if table})


def _of_sweep(placed: RunSpec) -> dict[str, Any]:
    """What tells the run from the others of its spec, where there are any."""
    repeats = {"repeats": placed.repeats} if placed.repeats > 1 else {}
    return {**repeats, "sweep": thaw(placed.swept)} if placed.swept else repeats


def import_run(file: Path, pool: PluginRegistry) -> RunSpec:
    """The run of a record, under its own id. Raises RecordError, SpecError or PluginError."""
    tables = read_toml(file)
    provenance = tables.get("provenance", {})
    run_id = provenance.get("run_id") if isinstance(provenance, dict) else None
    if not isinstance(run_id, str):
        raise RecordError(f"{file} has no provenance.run_id; it is not the record of a run")
    [placed] = resolve_document(Document(str(file), tables), pool).runs
    placed = placed.with_run_id(run_id)
    return attrs.evolve(
        placed,
        run=attrs.evolve(placed.run, repeat=provenance.get("repeat", 1)),
        repeats=provenance.get("repeats", 1),
        swept=provenance.get("sweep", {}),
    )


def _workload(run: Run[Any]) -> dict[str, Any]:
    table = {**_named(run, WorkloadTable), "time_limit": run.time_limit_s}
    return {**table, "image": run.image.ref} if run.image else table


def _parallelism(run: Run[Any]) -> dict[str, Any]:
    table = _named(run.parallelism, ParallelismTable)
    return {"vp": 1, **table}  # TOML has no null: 1 is off


def _named(value: Run[Any] | Target[Any] | Any, table: type[Any]) -> dict[str, Any]:
    """The keys of ``table`` as ``value`` has them, without nulls."""
    names = [field.name for field in attrs.fields(table) if hasattr(value, field.name)]
    return {name: unstructure(getattr(value, name)) for name in names if getattr(value, name) is not None}
