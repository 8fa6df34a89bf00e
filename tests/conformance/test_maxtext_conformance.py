"""MaxText: every published point, and other scales, resolve as the publisher's scripts resolve them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
