"""Validation of a run against what MaxText and its recipes support."""

import re
from collections.abc import Iterator
from typing import Any

from llmb import Fault, Run, check_experts, forbid_env, forbid_options, unsupported_degrees
from llmb_maxtext.maxtext_arguments import MODEL_ARGUMENTS, devices_per_node

SET_BY_LLMB = {
    "run_name": "",
    "steps": "workload.steps",
    "max_target_length": "model.seq_len",
    "per_device_batch_size": "[parallelism]",
    "gradient_accumulation_steps": "[parallelism]",
    "model_name": "workload.recipe",
    "head_dim": "model.head_size",
    **{argument: f"model.{size}" for argument, size in MODEL_ARGUMENTS.items()},
}
"""Arguments of MaxText that [framework] config must not set, each with the key of the spec that sets it."""

MESH_AXIS = re.compile(r"(ici|dcn)_\w+_parallelism")
"""Further such arguments, which [parallelism] sets: the sizes of the mesh, within a node and across nodes."""

KEY_HINTS = {
    **SET_BY_LLMB,
    "ici_tensor_parallelism": "parallelism.tp",
    "ici_fsdp_parallelism": "parallelism.fsdp",
}
"""Arguments of MaxText that users may write into the spec, each with the key that is meant."""


def find_errors(run: Run[Any]) -> list[Fault]:
    """Return all errors of a run, each with its key."""
    return [
        *unsupported_degrees(run, ("pp", "cp", "ep", "etp")),
        *check_experts(run),
        *_check_mesh(run),
        *_check_config(run),
        *_check_profile(run),
        *_check_profiler(run),
        *_check_env(run),
    ]


def _check_mesh(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error if tp does not divide the devices of a node, or tp x fsdp does not divide all GPUs."""
    tp, fsdp, inside = run.parallelism.tp, run.parallelism.fsdp, devices_per_node(run)
    if inside % tp:
        message = f"tp = {tp} does not divide the {inside} GPUs of a node"
        yield Fault(message=message, key="parallelism.tp", expected=f"a divisor of {inside}")
    elif run.gpus % (tp * fsdp):
        message = f"tp x fsdp = {tp} x {fsdp} = {tp * fsdp} does not divide {run.gpus} GPUs"
        yield Fault(message=message, key="parallelism.fsdp", expected=f"a divisor of {run.gpus // tp}")


def _check_config(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for each argument that would contradict the rest of the spec, and so the computed metrics."""
    axes = dict.fromkeys(filter(MESH_AXIS.fullmatch, run.options.config), "[parallelism]")
    yield from forbid_options(run.options.config, {**SET_BY_LLMB, **axes})


def _check_profile(run: Run[Any]) -> Iterator[Fault]:
    if run.profile is not None:
        nsys = "the recipe already runs both training phases under nsys, and the compiler uses the first report"
        reason = nsys if "nsys" in run.settings else "this recipe runs on CPUs, without a profiler"
        yield Fault(message=f"no capture can be chosen: {reason}", key="profile", expected="no [profile] table")


def _check_profiler(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error if a training ends before its first profiled step, or does not write the report that PGLE needs.

    MaxText would exit immediately if its profiler starts after the last step.
    """
    config = {**run.settings.get("config", {}), **run.options.config}
    profiler, first = config.get("profiler"), config.get("skip_first_n_steps_for_profiler")
    guided = run.settings.get("profile")
    if guided and run.options.config.get("profiler", "nsys") != "nsys":
        message = "the compiler uses the nsys report of the profile run"
        yield Fault(message=message, key="framework.config.profiler", expected='"nsys"')
    elif profiler and isinstance(first, int):
        if run.steps <= first:
            message = f"{run.steps} steps are too few, because MaxText's profiler starts at step {first}"
            yield Fault(message=message, key="workload.steps", expected=f"at least {first + 1}")
        if guided and guided["steps"] <= first:
            message = f"MaxText's profiler would start at step {first}, but the profile run has {guided['steps']} steps"
            key = "framework.config.skip_first_n_steps_for_profiler"
            yield Fault(message=message, key=key, expected=f"at most {guided['steps'] - 1}")


def _check_env(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for XLA_FLAGS in [env], which would replace the flags of every phase."""
    if "profile" in run.settings:
        reason = "each phase is compiled with flags of its own, the profile run without latency hiding"
        yield from forbid_env(run, {"XLA_FLAGS": reason})
