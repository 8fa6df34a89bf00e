"""docs/torchtitan.md documents the variables of the original script, and every key has the documented effect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from parts.examples import write_metadata
from parts.script_tables import DOCS, dry_run, planned, rows

DOCUMENT = (DOCS / "torchtitan.md").read_text()
SPEC: dict[str, dict[str, Any]] = {
    "workload": {"recipe": "torchtitan/deepseek-v3", "gpu_type": "b200", "dtype": "bf16", "gpus": 256},
    "target": {"scheduler": "slurm", "workdir": "/lustre/me"},
}

# Variables that users of the script set, from its README and launch script
VARIABLES = re.findall(
    r"\S+",
    """
GPU_TYPE DTYPE JOB_TOTAL_GPUS GPUS_PER_NODE TRAINING_STEPS SEQ_LEN LOCAL_BATCH_SIZE DATA_PARALLEL_SHARD_DEGREE
EXPERT_PARALLEL_DEGREE PIPELINE_PARALLEL_DEGREE PIPELINE_PARALLEL_SCHEDULE EP_COMM_BACKEND ACTIVATION_CHECKPOINT_MODE
COMM_INIT_TIMEOUT COMM_TRAIN_TIMEOUT ENABLE_PROFILE LOG_RANK USE_MNNVL DATASET_PATH RUN_CONF_IMAGE RUN_CONF_MOUNTS
LLMB_INSTALL SBATCH_ACCOUNT SBATCH_PARTITION
""",
)

KEYS = [(row[1].strip("`"), row[2].strip("`")) for row in rows(DOCUMENT, 3)]


@pytest.fixture(autouse=True, scope="module")
def _as_if_installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(write_metadata(tmp_path_factory.mktemp("site"))))
        for name in ("SBATCH_ACCOUNT", "SLURM_ACCOUNT", "SBATCH_PARTITION", "SLURM_PARTITION"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what a dry run of a published configuration prints."""
    return shown(tmp_path_factory.mktemp("published"))


def shown(folder: Path, *overrides: str) -> str:
    """Return everything that a dry run prints of the job, as one text."""
    table = dry_run(folder, SPEC, *overrides)
    files = "\n".join(table["job"]["files"].values())
    return "\n".join([files, table["script"], *(json.dumps(task) for task in table["preparation"])])


def test_every_variable_of_the_script_has_a_row() -> None:
    assert [row[0].strip("`") for row in rows(DOCUMENT, 3)] == VARIABLES


@pytest.mark.parametrize(("key", "effect"), KEYS, ids=[key for key, _ in KEYS])
def test_every_key_has_the_documented_effect(tmp_path: Path, published: str, key: str, effect: str) -> None:
    name, _, value = key.partition(" = ")
    assert effect in shown(tmp_path, f"{name}={value}")
    assert effect not in published


def test_every_option_is_documented() -> None:
    from llmb_torchtitan.plugin import TorchTitanOptions

    table = DOCUMENT.partition("## Options")[2].partition("## ")[0]
    options = [field.name for field in attrs.fields(TorchTitanOptions)]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == options


def test_every_prepared_item_is_documented_with_its_place(tmp_path: Path) -> None:
    table = DOCUMENT.partition("## What llmb prepares")[2].partition("- **")[0]
    folders = re.findall(r"`(cache/\w+)", table)
    scripts = [f"{plan.task.work}\n{plan.task.check}" for plan in planned(tmp_path, SPEC).tasks]
    assert len(scripts) == len(folders)
    for folder, script in zip(folders, scripts, strict=True):
        assert f"/lustre/me/{folder}/" in script
