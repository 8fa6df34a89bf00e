"""Validation of a run against what MaxText and its recipes support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmb import Fault, Run, check_experts, forbid_env, forbid_options, unsupported_degrees
from llmb_maxtext.maxtext_arguments import batch_arguments, devices_per_node, mesh_arguments

DECIDED = {
    "run_name": "",
    "steps": "workload.steps",
    "max_target_length": "model.seq_len",
    "gradient_accumulation_steps": "[parallelism]",
}
"""Arguments of MaxText that [framework] config must not set, each with the key of the spec that sets it.

`_check_config` adds the arguments of batch and mesh.
"""


def find_errors(run: Run[Any]) -> list[Fault]:
    """Return all errors of a run, each with its key."""
    dense = [*unsupported_degrees(run, ("pp", "cp", "ep", "etp")), *check_experts(run)]
    return [*dense, *_check_mesh(run), *_check_config(run), *_check_profile(run), *_check_steps(run), *_check_env(run)]


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
    decided = {**dict.fromkeys((*batch_arguments(run), *mesh_arguments(run)), "[parallelism]"), **DECIDED}
    return forbid_options(run.options.config, decided)


def _check_profile(run: Run[Any]) -> Iterator[Fault]:
    if run.profile is not None:
        nsys = "the recipe already runs both training phases under nsys, and the compiler uses the first report"
        reason = nsys if "nsys" in run.settings else "this recipe runs on CPUs, without a profiler"
        yield Fault(message=f"no capture can be chosen: {reason}", key="profile", expected="no [profile] table")


def _check_steps(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error if the run ends before the first profiled step. MaxText would exit immediately."""
    config = {**run.settings.get("config", {}), **run.options.config}
    first = config.get("skip_first_n_steps_for_profiler")
    if config.get("profiler") and isinstance(first, int) and run.steps <= first:
        message = f"{run.steps} steps are too few, because MaxText's profiler starts at step {first}"
        yield Fault(message=message, key="workload.steps", expected=f"at least {first + 1}")


def _check_env(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for XLA_FLAGS in [env], which would replace the flags of every phase."""
    if "profile" in run.settings:
        reason = "each phase is compiled with flags of its own, the profile run without latency hiding"
        yield from forbid_env(run, {"XLA_FLAGS": reason})
