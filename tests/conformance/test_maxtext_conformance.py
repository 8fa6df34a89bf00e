"""MaxText: every published point, and other scales, resolve as the publisher's scripts resolve them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from parts.conformance import (
    COMMON,
    Differences,
    differences,
    facts,
    job_env,
    outdated,
    plan_runs,
    step_options,
    unexplained,
)

import llmb

FACTS = facts("maxtext-24.11")
PHASES = {"profile": 0, "measure": 2}
PUBLISHED = (64, 128, 256, 512, 1024, 2048)
PATH = "a path"
REASONS = {
    **COMMON,
    "args.run_name": "the id of the run, so that no run overwrites the files of another",
    "args.base_output_directory": PATH,
    "args.dcn_tensor_parallelism": "1, which is MaxText's default",
    "xla_flags.xla_dump_to": PATH,
    "xla_flags.xla_gpu_pgle_profile_file_or_directory_path": PATH,
}


def phase_of(plan: llmb.RunPlan, number: int) -> dict[str, dict[str, str]]:
    """Return arguments, XLA flags and variables of a phase."""
    words = plan.job.phases[number].command
    script = words.index("python3") + 1
    env = job_env(plan, number)
    flags = (flag.removeprefix("--").partition("=") for flag in env.pop("XLA_FLAGS").split())
    arguments = (word.partition("=") for word in words[script + 2 :])
    return {
        "args": {"script": " ".join(words[script : script + 2]), **{name: value for name, _, value in arguments}},
        "xla_flags": {name: "" if value == "true" else value for name, _, value in flags},  # --a means --a=true
        "env": env,
    }


def found_differences(plan: llmb.RunPlan, point: Mapping[str, Any]) -> Differences:
    found: Differences = {}
    for name, number in PHASES.items():
        for part, ours in phase_of(plan, number).items():
            theirs = {**FACTS["common"][name][part], **point[name][part]}
            if part == "xla_flags":
                theirs = {key: "" if value == "true" else value for key, value in theirs.items()}
            found |= differences(part, *({key: _bare(text) for key, text in each.items()} for each in (theirs, ours)))
    published = {"--mpi": FACTS["common"]["measure"]["env"]["SLURM_MPI_TYPE"]}
    published |= dict.fromkeys(("--container-writable", "--no-container-mount-home"), "")
    return found | differences("srun", published, step_options(plan))


def _bare(text: str) -> str:
    """Return a value in the form that both write: Python and MaxText accept False and false."""
    return {"False": "false", "True": "true"}.get(text, text)


def all_differences(*, published: bool) -> dict[str, Differences]:
    """Return the differences of all published points, or of all other scales, by name."""
    found = {}
    for point in FACTS["points"]:
        if (point["gpus"] in PUBLISHED) is published:
            gpu_type, dtype, gpus = point["gpu_type"], point["dtype"], point["gpus"]
            [plan] = plan_runs("maxtext/llama2-70b", gpu_type, dtype, gpus)
            found[f"{gpu_type} {dtype} {gpus}"] = found_differences(plan, point)
    return found


def test_every_published_point_resolves_as_published() -> None:
    found = all_differences(published=True)

    assert len(found) == 18
    assert unexplained(found, REASONS) == {}
    assert outdated(found, REASONS) == set()


def test_other_scales_resolve_as_the_publisher_computes_them() -> None:
    found = all_differences(published=False)

    assert len(found) == 6  # 96 and 640 GPUs
    assert unexplained(found, REASONS) == {}


@pytest.mark.parametrize(
    ("gpus", "gpus_per_node", "dcn_fsdp", "dcn_data"),
    [
        (32, 8, 4, 1),
        (384, 8, 48, 1),
        (504, 8, 63, 1),
        (512, 8, 16, 4),
        (768, 8, 16, 6),
        (128, 4, 32, 1),
        (256, 4, 16, 4),
    ],
)
def test_the_mesh_depends_on_the_number_of_nodes(gpus: int, gpus_per_node: int, dcn_fsdp: int, dcn_data: int) -> None:
    target = {"gpus_per_node": gpus_per_node}
    [plan] = plan_runs("maxtext/llama2-70b", "h100", "bf16", gpus, target=target)
    arguments = phase_of(plan, PHASES["measure"])["args"]

    assert (arguments["dcn_fsdp_parallelism"], arguments["dcn_data_parallelism"]) == (str(dcn_fsdp), str(dcn_data))
    assert (arguments["ici_fsdp_parallelism"], arguments["per_device_batch_size"]) == (str(gpus_per_node), "2")
