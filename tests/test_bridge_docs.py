"""docs/megatron-bridge.md documents every variable of the original scripts, and every key has the documented effect."""

from __future__ import annotations

import functools
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from parts.forked import run_llmb
from parts.script_tables import DOCS, dry_run, rows

DOCUMENT = (DOCS / "megatron-bridge.md").read_text()
SPEC: dict[str, dict[str, Any]] = {
    "workload": {"recipe": "megatron_bridge/llama3.1-405b@25.10", "gpu_type": "gb200", "dtype": "fp8", "gpus": 128},
    "target": {"scheduler": "slurm", "workdir": "/lustre/me"},
}

# Variables and options that users of the scripts set, from their README and launch script
VARIABLES = re.findall(
    r"\S+",
    """
JOB_TOTAL_GPUS GPU_TYPE MODEL_SIZE DTYPE FP8_RECIPE LLMB_INSTALL LLMB_WORKLOAD LLMB_REPO HF_TOKEN
ENABLE_PROFILE RUN_CONF_PROFILE_START_STEP RUN_CONF_PROFILE_STOP_STEP PROFILE_START_STEP PROFILE_STOP_STEP
ENABLE_GPU_METRICS ENABLE_VBOOST SBATCH_PARTITION SBATCH_ACCOUNT SBATCH_GPUS_PER_NODE -A -p --gres
RUN_CONF_IMAGE RUN_CONF_MOUNTS TIME_LIMIT MAX_STEPS TP PP CP VP MBS GBS CLUSTER_TYPE NEMORUN_HOME GSW_VERSION FW_VERSION
ENABLE_CHECKPOINT CHECKPOINT_DIR CHECKPOINT_INTERVAL LOAD_CHECKPOINT_PATH
parse_train_timing_mbridge.sh --format=csv --format=json
""",
)
LAUNCHER = ("-w", "-s", "--dtype", "--scale", "-p")  # of llmb-run single
SLURM_PARAMETERS = ("nodelist", "constraint", "reservation")


KEYS = [(row[1].strip("`"), row[2].strip("|` ")) for row in rows(DOCUMENT, 3)]


def shown(tmp_path: Path, *overrides: str) -> str:
    """Return everything that a dry run prints of the run, as one text."""
    table = dry_run(tmp_path, SPEC, *overrides)
    words = [", ".join(json.dumps(word) for word in phase["command"]) for phase in table["job"]["phases"]]
    return "\n".join([json.dumps(table), table["script"], *words])


@functools.cache
def unchanged() -> str:
    """Return what a dry run without a change prints."""
    with tempfile.TemporaryDirectory() as folder:
        return shown(Path(folder))


def test_every_variable_and_option_of_the_scripts_has_a_row() -> None:
    documented = [name for row in [*rows(DOCUMENT, 3), *rows(DOCUMENT, 2)] for name in re.findall(r"`([^`]+)`", row[0])]
    launcher = {word for name in documented if name.startswith("llmb-run ") for word in name.split()[1:]}
    parameters = {match[1] for name in documented if (match := re.match(r'ADDITIONAL_SLURM_PARAMS="(\w+)=', name))}

    assert set(VARIABLES) - set(documented) == set()
    assert set(LAUNCHER) - launcher == set()
    assert set(SLURM_PARAMETERS) - parameters == set()


@pytest.mark.parametrize(("key", "effect"), KEYS, ids=[key for key, _ in KEYS])
def test_every_key_has_the_documented_effect(tmp_path: Path, key: str, effect: str) -> None:
    name, _, value = key.partition(" = ")

    assert effect in shown(tmp_path, f"{name}={value}")
    assert effect not in unchanged()


def test_the_example_command_prints_the_published_metrics(tmp_path: Path) -> None:
    [command] = re.findall(r"^llmb (metrics .*)$", DOCUMENT, re.MULTILINE)
    done = run_llmb(command.split(), cwd=tmp_path)
    printed = " ".join(done.stdout.split())

    for text in (
        "MFU 33.40 % of 4900 TFLOP/s",
        "tokens/s 91,3",
        "days to 1T tokens 126.7",
        "by step time and the recipe",
    ):
        assert text in printed
