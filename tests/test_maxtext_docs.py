"""docs/maxtext.md documents every variable of the original script, and every key has the documented effect."""

from __future__ import annotations

import functools
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from parts.script_tables import DOCS, dry_run, planned, rows

DOCUMENT = (DOCS / "maxtext.md").read_text()
SPEC: dict[str, dict[str, Any]] = {
    "workload": {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64},
    "target": {"scheduler": "slurm", "workdir": "/lustre/me"},
}

# Variables and options that users of the script set, from its README and launch script
VARIABLES = re.findall(
    r"\S+",
    """
STAGE_PATH DTYPE NUM_NODES GSW_VERSION FW_VERSION JOB_TOTAL_GPUS SBATCH_GPUS SBATCH_ACCOUNT SBATCH_PARTITION
RUN_CONF_IMAGE IMAGE RUN_CONF_GPU_PER_NODE SLURM_NTASKS_PER_NODE RUN_CONF_MAX_STEPS OPTIMIZATION_NAME OPTIMIZATION_CODE
SLURM_MPI_TYPE SRUN_OUTPUT SRUN_ERROR -A -p -N --time --dependency
""",
)

KEYS = [(row[1].strip("`"), row[2].strip("|` ")) for row in rows(DOCUMENT, 3)]


def shown(tmp_path: Path, *overrides: str) -> str:
    """Return everything that a dry run prints of the job, as one text."""
    table = dry_run(tmp_path, SPEC, *overrides)
    return json.dumps(table["job"]) + table["script"] + json.dumps([task["key"] for task in table["preparation"]])


@functools.cache
def unchanged() -> str:
    """Return what a dry run without a change prints."""
    with tempfile.TemporaryDirectory() as folder:
        return shown(Path(folder))


def test_every_variable_of_the_script_has_a_row() -> None:
    documented = {name for row in [*rows(DOCUMENT, 3), *rows(DOCUMENT, 2)] for name in re.findall(r"`([^`]+)`", row[0])}
    assert set(VARIABLES) - documented == set()


@pytest.mark.parametrize(("key", "effect"), KEYS, ids=[key for key, _ in KEYS])
def test_every_key_has_the_documented_effect(tmp_path: Path, key: str, effect: str) -> None:
    name, _, value = key.partition(" = ")

    assert effect in shown(tmp_path, f"{name}={value}")
    assert effect not in unchanged()


def test_the_documented_phases_and_their_outputs_are_those_of_the_job(tmp_path: Path) -> None:
    phases = planned(tmp_path, SPEC).job.phases
    documented = re.findall(r"^\| `(\w+)` \| (all|the first) \| .* \| `(.+)` \|$", DOCUMENT, re.MULTILINE)
    assert [(name, ranks == "all") for name, ranks, _ in documented] == [
        (each.name, each.ranks == "all") for each in phases
    ]
    for phase, (_, _, left) in zip(phases, documented, strict=True):
        assert all(output.endswith(left.partition("<run>")[2]) for output in phase.outputs)


def test_arguments_of_the_spec_override_the_recipe_in_both_training_phases(tmp_path: Path) -> None:
    [arguments] = re.findall(r"```toml\n\[framework.config\]\n(.*?)```", DOCUMENT, re.DOTALL)
    lines = [f"framework.config.{line}" for line in arguments.splitlines()]
    profiled, _, measured = planned(tmp_path, SPEC, *lines).job.phases
    for phase in (profiled, measured):
        assert {"remat_policy=full", "attention=dot_product"} < set(phase.command)
