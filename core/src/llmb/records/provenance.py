"""Provenance: the origin of a run, and the machines and the software on which its job ran, as the job reports them."""

from collections.abc import Container, Mapping
from datetime import UTC, datetime
from typing import Any

from llmb.plan_runs import RunPlan
from llmb.plugins.registry import PluginRegistry
from llmb.recipes.accelerators import accelerators
from llmb.records.record import RunRecord
from llmb.values.errors import RecordError
from llmb.values.gpu_names import describe_other_gpus
from llmb.values.run import Run
from llmb.version import VERSION


def parse_provenance(data: bytes, secrets: Container[str] = ()) -> Mapping[str, str | list[str] | dict[str, str]]:
    """Parse ``key=value`` lines. A key with several values gets a list, and keys such as ``env.NAME`` get a table.

    Leave out keys without a value, a last line without its end, and the variables that are ``secrets``, because the
    environment of a job may contain the secrets of the tasks before it.
    """
    values: dict[str, dict[str, None]] = {}
    env: dict[str, str] = {}
    for line in data.decode(errors="replace").split("\n")[:-1]:
        key, _, value = line.partition("=")
        name = key.removeprefix("env.")
        if name != key:
            env |= {} if name in secrets else {name: value}
        elif key and value:
            values.setdefault(key, {})[value] = None
    found: dict[str, str | list[str] | dict[str, str]] = {
        key: next(iter(each)) if len(each) == 1 else list(each) for key, each in values.items()
    }
    return found | ({"env": env} if env else {})


def find_other_gpus(record: RunRecord, run: Run[Any]) -> str:
    """Describe the GPUs of another type that the job of a run reported, or return "".

    A damaged run.toml reports nothing: the result of a run must not depend on it.
    """
    try:
        provenance = record.spec().get("provenance")
    except RecordError:
        return ""
    reported = provenance.get("gpu") if isinstance(provenance, dict) else None
    several = reported if isinstance(reported, list) else [reported]
    products = [each for each in several if isinstance(each, str)]
    known = [name for name in accelerators() if name != "cpu"]
    return describe_other_gpus(products, run.gpu_type, known, several_nodes=run.nodes > 1)


def provenance_of_run(plan: RunPlan, first_repeat: str, first_run: str, registry: PluginRegistry) -> dict[str, Any]:
    """Return the origin of a new run for its run.toml: versions, the time, and the runs that belong to it.

    Repeats name the first of them, so that they are judged together. Runs with a ``target.max_jobs`` name the first run
    of their sweep, so that their jobs are counted together.
    """
    wanted = {("framework", plan.run.framework), ("scheduler", plan.target.scheduler)}
    used = [entry for entry in registry.installed if (entry.kind, entry.name) in wanted or entry.kind == "extension"]
    image = plan.run.image
    return {
        "llmb": VERSION,
        "plugins": {entry.distribution: entry.version for entry in used if entry.distribution},
        "created": datetime.now(UTC).isoformat(timespec="microseconds"),
        **({"image_digest": image.digest} if image and image.digest else {}),
        **({"first_repeat": first_repeat} if plan.spec.repeats > 1 else {}),
        **({"first_run": first_run} if plan.target.max_jobs else {}),
    }
