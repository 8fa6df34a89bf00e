"""The published points of DGX Cloud benchmarking, and what its launch scripts pass to Megatron-Bridge."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

RECORDER = """#!/bin/bash
printf '%s\\0' "${@:2}" >"$RECORD.arguments"
env -0 >"$RECORD.env"
"""
"""Program instead of Python for launch.sh. It records the arguments after the script's name, and the environment."""

OF_LAUNCHER = ("NCCL_", "NVTE_", "OPENBLAS_")
"""The variables of launch.sh that reach the job."""

KINDS = ("pretrain", "finetune")
"""The kinds of workloads of Megatron-Bridge."""


@attrs.frozen
class Published:
    """One point of metadata.yaml, with the arguments and variables of launch.sh."""

    workload: str
    gpu_type: str
    dtype: str
    gpus: int
    commit: str
    arguments: tuple[str, ...]
    env: Mapping[str, str] = attrs.field(eq=False)


def published_points(collection: Path, scratch: Path) -> Iterator[Published]:
    """Yield every point of Megatron-Bridge in a checkout of the collection."""
    for file in sorted(collection.rglob("metadata.yaml")):
        metadata = yaml.safe_load(file.read_text())
        general = metadata.get("general", {})
        if general.get("framework") != "megatron_bridge" or general.get("workload_type") not in KINDS:
            continue
        commit = metadata["repositories"]["megatron_bridge"]["commit"]
        for gpu_type, configs in metadata["run"]["gpu_configs"].items():
            for size, dtype, gpus in _combinations(configs["model_configs"]):
                env = {"GPU_TYPE": gpu_type, "MODEL_SIZE": size, "DTYPE": dtype, "JOB_TOTAL_GPUS": str(gpus)}
                arguments, variables = _run_launcher(file.parent, env, scratch)
                yield Published(_name(general), gpu_type, dtype, gpus, commit, arguments, variables)


def _name(general: Mapping[str, str]) -> str:
    """Return the name of a workload, with its kind unless it is pre-training."""
    name, kind = general["workload"], general["workload_type"]
    return name if kind == "pretrain" else f"{kind}_{name}"


def _combinations(configs: list[dict[str, Any]]) -> Iterator[tuple[str, str, int]]:
    for config in configs:
        dtypes = config["dtypes"]
        for dtype in [dtypes] if isinstance(dtypes, str) else dtypes:
            own = dtypes[dtype] if isinstance(dtypes, dict) else config["scales"]
            for gpus in [*own, *config.get("proxy_scales", [])]:
                yield config["model_size"], dtype, gpus


def _run_launcher(folder: Path, point: Mapping[str, str], scratch: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Run launch.sh with a recorder instead of Python. Raise CalledProcessError if the script fails.

    Paths below the folder of the installation begin with $LLMB_INSTALL.
    """
    programs = scratch / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("python", "python3"):
        (programs / name).write_text(RECORDER)
        (programs / name).chmod(0o755)
    metadata = yaml.safe_load((folder / "metadata.yaml").read_text())["general"]
    install, record = scratch / "install", scratch / "record"
    folder_name = f"{metadata['workload_type']}_{metadata['workload']}"
    (install / "workloads" / folder_name / "Megatron-Bridge").mkdir(parents=True, exist_ok=True)
    env = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(scratch),
        "RECORD": str(record),
        "LLMB_INSTALL": str(install),
        "HF_TOKEN": "none",  # some scripts require the variable and pass its value on
        "SBATCH_ACCOUNT": "account",
        "SBATCH_PARTITION": "partition",
        **point,
    }
    subprocess.run(["bash", "launch.sh"], cwd=folder, env=env, check=True, capture_output=True)
    words = Path(f"{record}.arguments").read_text().split("\0")[:-1]
    arguments = tuple(word.replace(str(install), "$LLMB_INSTALL") for word in words)
    pairs = (each.partition("=") for each in Path(f"{record}.env").read_text().split("\0")[:-1])
    return arguments, {name: value for name, _, value in pairs if name.startswith(OF_LAUNCHER)}
