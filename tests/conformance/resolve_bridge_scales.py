"""Resolve the layout and batch size of Megatron-Bridge's recipes at numbers of GPUs that are not published.

``uv run --no-project --with omegaconf python resolve_bridge_scales.py CLONE`` calls the functions of the publisher's
scripts, at the commits of the releases in a clone of Megatron-Bridge, and writes megatron_bridge-other-scales.json.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
COMMITS = {
    "25.10": "d7dfa7642caf7c8e70547394895f0fb7777b5173",  # of 25.10.02; f23d790c of 25.10.00 resolves the same
    "25.12": "4df8c97392bc9c3906739e658f203f6810008821",  # of 25.12.02; 15927667 of 25.12.00 resolves the same
}
SCALES = {"8b": (24, 48, 320), "70b": (96, 192, 2304), "405b": (192, 1152, 1536)}
MODELS = {"8b": "llama3", "70b": "llama3", "405b": "llama31"}
OVERRIDES = ("tensor_parallel", "pipeline_parallel", "context_parallel", "virtual_pipeline_parallel", "micro_batch")
MORE_OVERRIDES = ("expert_parallel", "expert_tensor_parallel", "global_batch")

Row = Mapping[str, Any]
Layout = dict[str, Any]


def layout_of_25_10(scripts: Path, size: str, row: Row, gpus: int) -> Layout:
    """Return what the table of presets yields; without a preset, the script scales the batch of the default one."""
    common, omegaconf = importlib.import_module("utils.common"), importlib.import_module("omegaconf")
    model = MODELS[size]
    table = omegaconf.OmegaConf.load(scripts / "configs" / model / f"{model}_{size}_llm_pretrain.yaml")
    unset = {f"{name}_size": None for name in (*OVERRIDES, *MORE_OVERRIDES)}
    arguments = Namespace(gpu=row["gpu_type"], num_gpus=gpus, model_name=model, model_size=size, **unset)
    preset = common.get_perf_matrix_overrides(table, arguments)
    dtype = row["dtype"] if row["dtype"] == "bf16" else f"{row['dtype']}_{row['fp8_recipe']}"
    merged = omegaconf.OmegaConf.merge(preset["common"], preset.get(dtype) or {})
    degrees = {"tp": merged.get("tp", 1), "pp": merged.get("pp", 1), "vp": merged.get("vp"), "cp": merged.get("cp", 1)}
    return {**degrees, "micro_batch_size": merged["mbs"], "global_batch_size": merged["gbs"]}


def layout_of_25_12(_scripts: Path, size: str, row: Row, gpus: int) -> Layout:
    """Return the configuration of the workload, whose batch run_script.py scales by the number of GPUs."""
    utils = importlib.import_module("utils.utils")
    dtype = f"fp8_{row['fp8_recipe']}" if row["dtype"] == "fp8" else row["dtype"]
    base = utils.get_workload_base_config(MODELS[size], size, row["gpu_type"], dtype, "llm", "pretrain")
    return {
        "tp": base.tensor_model_parallel_size,
        "pp": base.pipeline_model_parallel_size,
        "vp": base.virtual_pipeline_model_parallel_size,
        "cp": base.context_parallel_size,
        "micro_batch_size": base.micro_batch_size,
        "global_batch_size": int(base.gbs_scaling_factor * gpus),
    }


RESOLVERS: dict[str, Callable[[Path, str, Row, int], Layout]] = {"25.10": layout_of_25_10, "25.12": layout_of_25_12}


def resolve(release: str, scripts: Path) -> list[dict[str, Any]]:
    """Return a row per model, GPU type, dtype and FP8 scaling that the release publishes, with all its scales."""
    sys.path.insert(0, str(scripts))
    for name in [each for each in sys.modules if each.partition(".")[0] in ("utils", "configs")]:
        del sys.modules[name]  # those of another release
    facts, rows = json.loads((HERE / f"megatron_bridge-{release}.json").read_text()), list[dict[str, Any]]()
    for size, model in facts["models"].items():
        for row in model["points"]:
            named = {"size": size, **{key: row[key] for key in ("gpu_type", "dtype", "fp8_recipe")}}
            layouts = [RESOLVERS[release](scripts, size, row, gpus) for gpus in SCALES[size]]
            batches = [layout.pop("global_batch_size") for layout in layouts]
            assert all(layout == layouts[0] for layout in layouts)
            whole = {**named, **layouts[0], "gpus": SCALES[size], "global_batch_size": batches}
            if whole not in rows:  # some published points have several rows
                rows.append(whole)
    return rows


def main(clone: Path) -> None:
    """Write the file beside this script."""
    lines = []
    for release, commit in COMMITS.items():
        command = ["git", "-C", str(clone), "archive", commit, "scripts/performance"]
        archive = subprocess.run(command, check=True, capture_output=True).stdout
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["tar", "--extract", "--directory", folder], input=archive, check=True)
            rows = resolve(release, Path(folder, "scripts/performance"))
        lines.append(f' "{release}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]")
    (HERE / "megatron_bridge-other-scales.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
