"""docs/nemo-launcher.md: every variable of the original scripts has its key, and every key does what is said there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb
from llmb.cli.dry_run import as_table

DOCUMENT = (Path(__file__).parents[1] / "docs" / "nemo-launcher.md").read_text()
SPEC: dict[str, dict[str, Any]] = {
    "workload": {"recipe": "nemo_launcher/llama3.1-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64},
    "target": {"scheduler": "slurm", "workdir": "/lustre/me"},
}

# What users of the scripts write, by their READMEs
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


def rows(columns: int) -> list[list[str]]:
    """The rows of the tables whose first column is what stands in the scripts."""
    tables = re.findall(r"\| in the scripts \|.*\n\|[-|]+\n((?:\|.*\n)+)", DOCUMENT)
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for table in tables for line in table.splitlines()]
    return [row for row in cells if len(row) == columns]


KEYS = [(row[0].strip("|` ").partition("`")[0], row[1].strip("`"), row[2].strip("|` ")) for row in rows(3)]


def planned(tmp_path: Path, *overrides: str) -> str:
    """All that a dry run shows of the job, as one text."""
    file = tmp_path / "spec.toml"
    file.write_text(tomli_w.dumps(SPEC))
    [run] = llmb.plan(llmb.load(file, overrides=overrides), llmb.PluginPool())
    table = as_table(run)
    text = (
        json.dumps(table["job"], indent=0)
        + "\n"
        + "\n".join([table["script"], *(t["key"] for t in table["preparation"])])
    )
    return re.sub(r"\s*\n\s*", "\n", text)


def test_every_variable_of_the_scripts_has_its_row() -> None:
    told = {name for row in [*rows(3), *rows(2)] for name in re.findall(r"`([^`]+)`", row[0])}

    assert set(VARIABLES) - told == set()


@pytest.mark.parametrize(("variable", "key", "comes"), KEYS, ids=[variable for variable, _, _ in KEYS])
def test_every_key_does_what_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, key: str, comes: str
) -> None:
    for name in ("SBATCH_ACCOUNT", "SLURM_ACCOUNT", "SBATCH_PARTITION", "SLURM_PARTITION"):
        monkeypatch.delenv(name, raising=False)
    name, _, value = key.partition(" = ")

    assert comes in planned(tmp_path, f"{name}={value}")
    if key != 'target.gpu_request = "gres"':  # which is what comes without it
        assert comes not in planned(tmp_path)


def test_the_token_is_the_tokenizer_s_alone(tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    file.write_text(tomli_w.dumps(SPEC))
    [run] = llmb.plan(llmb.load(file), llmb.PluginPool())

    assert {task.task.kind: task.task.secrets for task in run.tasks if task.task.secrets} == {
        "tokenizer of meta-llama/Meta-Llama-3-8B": ("HF_TOKEN",)
    }
    assert run.script.secrets == ()
