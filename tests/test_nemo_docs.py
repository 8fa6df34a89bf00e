"""docs/nemo-launcher.md documents every variable of the original scripts, and every key has the documented effect."""

from __future__ import annotations

import functools
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from parts.script_tables import DOCS, dry_run, planned, rows

DOCUMENT = (DOCS / "nemo-launcher.md").read_text()
SPEC: dict[str, dict[str, Any]] = {
    "workload": {"recipe": "nemo_launcher/llama3.1-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64},
    "target": {"scheduler": "slurm", "workdir": "/lustre/me"},
}

# Variables and options that users of the scripts set, from their READMEs
VARIABLES = re.findall(
    r"\S+",
    """
STAGE_PATH HF_TOKEN DTYPE MODEL_SIZE NUM_NODES N_GPUS N_GPUS_PER_NODE JOB_TOTAL_GPUS GSW_VERSION
SBATCH_ACCOUNT SBATCH_PARTITION SBATCH_GPUS_PER_NODE SLURM_ACCOUNT SLURM_PARTITION SLURM_GPUS_PER_NODE SBATCH_GPUS
ENABLE_PROFILE RUN_CONF_PROFILE_START_STEP RUN_CONF_PROFILE_STOP_STEP RUN_CONF_PROFILE_RANKS
RUN_CONF_PROFILE_GPU_METRICS RUN_CONF_PROFILE_CPU ENABLE_NCCL_TRACE
RUN_CONF_IMAGE RUN_CONF_INDEX_DIR RUN_CONF_RESULT_DIR RUN_CONF_GPU_PER_NODE RUN_CONF_MAX_STEPS MAX_STEPS
OPTIMIZATION_NAME OPTIMIZATION_CODE SLURM_MPI_TYPE SRUN_OUTPUT SRUN_ERROR TP PP VP CP NUM_LAYERS SEQ_LEN GBS
PYTHONUSERBASE -A -p -N --gres --time --dependency
""",
)


KEYS = [(row[0].strip("|` ").partition("`")[0], row[1].strip("`"), row[2].strip("|` ")) for row in rows(DOCUMENT, 3)]


def shown(tmp_path: Path, *overrides: str) -> str:
    """Return everything that a dry run prints of the job, as one text."""
    table = dry_run(tmp_path, SPEC, *overrides)
    keys = [task["key"] for task in table["preparation"]]
    text = "\n".join([json.dumps(table["job"], indent=0), table["script"], *keys])
    return re.sub(r"\s*\n\s*", "\n", text)


@functools.cache
def unchanged() -> str:
    """Return what a dry run without a change prints."""
    with tempfile.TemporaryDirectory() as folder:
        return shown(Path(folder))


def test_every_variable_of_the_scripts_has_a_row() -> None:
    documented = {name for row in [*rows(DOCUMENT, 3), *rows(DOCUMENT, 2)] for name in re.findall(r"`([^`]+)`", row[0])}

    assert set(VARIABLES) - documented == set()


@pytest.mark.parametrize(("variable", "key", "effect"), KEYS, ids=[variable for variable, _, _ in KEYS])
def test_every_key_has_the_documented_effect(tmp_path: Path, variable: str, key: str, effect: str) -> None:
    name, _, value = key.partition(" = ")

    assert effect in shown(tmp_path, f"{name}={value}")
    if key != 'target.gpu_request = "gres"':  # the default
        assert effect not in unchanged()


def test_only_the_tokenizer_task_receives_the_token(tmp_path: Path) -> None:
    run = planned(tmp_path, SPEC)

    assert {task.task.kind: task.task.secrets for task in run.tasks if task.task.secrets} == {
        "tokenizer of meta-llama/Meta-Llama-3-8B": ("HF_TOKEN",)
    }
    assert run.script.secrets == ()
