"""Comparison of planned runs with what the publishers' own scripts resolve (tests/conformance/*.json)."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import llmb

FACTS = Path(__file__).parents[1] / "conformance"
TARGET = {"scheduler": "slurm", "workdir": "/w", "account": "acct", "partition": "part"}
ABSENT = "(absent)"

# Differences from the scripts that every framework has, each with its reason.
COMMON = {
    "srun.--wait": "24.11 has no limit; a dead rank would hold all nodes until the time limit",
    "srun.--kill-on-bad-exit": "as --wait",
    "env.SLURM_MPI_TYPE": "a variable of srun; llmb passes --mpi instead, and `mpi_of` compares both",
}


def facts(name: str) -> Any:
    """Return the facts of one release."""
    return json.loads((FACTS / f"{name}.json").read_text())


def plan_runs(recipe: str, gpu_type: str, dtype: str, gpus: int | list[int], **tables: Any) -> list[llmb.RunPlan]:
    """Plan the runs of a recipe on Slurm, without any change to the published configuration."""
    workload = {"recipe": recipe, "gpu_type": gpu_type, "dtype": dtype, "gpus": gpus, **tables.pop("workload", {})}
    target = {**TARGET, **tables.pop("target", {})}
    tables |= {"workload": workload, "target": target}
    return list(llmb.plan(llmb.load(tables, registry=_registry()), registry=_registry()))


@functools.cache
def _registry() -> llmb.PluginRegistry:
    """Return one registry for all points, which reads each recipe once."""
    return llmb.PluginRegistry()


def step_options(plan: llmb.RunPlan) -> dict[str, str]:
    """Return the options with which srun starts the measured phase, without those of logs, nodes and paths."""
    lines = plan.script.text.splitlines()
    [line] = [each for each in lines if each.strip().startswith("srun --label")]
    container = lines[lines.index("container=(") + 1 :]
    words = [*shlex.split(line), *(each.strip() for each in container[: container.index(")")])]
    options = dict(_split(word) for word in words if word.startswith("--"))
    ours = ("--label", "--output", "--container-workdir", "--container-image", "--container-mounts")
    return {name: value for name, value in options.items() if name not in ours}


def directives(plan: llmb.RunPlan) -> dict[str, str]:
    """Return the options of sbatch."""
    lines = (line for line in plan.script.text.splitlines() if line.startswith("#SBATCH "))
    return dict(_split(line.removeprefix("#SBATCH --")) for line in lines)


def _split(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value


def job_env(plan: llmb.RunPlan, phase: int = -1) -> dict[str, str]:
    """Return the variables of a phase."""
    return {**plan.job.env, **plan.job.phases[phase].env}


def flatten(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables by their dotted keys."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def differences(part: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Differences:
    """Return what differs, by ``part.key``."""
    pairs = {key: (theirs.get(key, ABSENT), ours.get(key, ABSENT)) for key in {**theirs, **ours}}
    return {f"{part}.{key}": pair for key, pair in pairs.items() if pair[0] != pair[1]}


Differences = dict[str, tuple[Any, Any]]
"""Differences by ``part.key``: the publisher's value, and llmb's."""


def unexplained(found: Mapping[str, Differences], reasons: Mapping[str, str]) -> dict[str, Differences]:
    """Return the differences of each point that have no reason."""
    kept = {name: {key: pair for key, pair in each.items() if key not in reasons} for name, each in found.items()}
    return {name: each for name, each in kept.items() if each}


def outdated(found: Mapping[str, Differences], reasons: Mapping[str, str]) -> set[str]:
    """Return the reasons for differences that no point has any more. Delete them."""
    return set(reasons) - {key for each in found.values() for key in each}
