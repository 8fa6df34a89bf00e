"""What MaxText, or its recipes, cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmb import Fault, Run, check_experts, forbid_env, forbid_options, unsupported_degrees
from llmb_maxtext.phases import batch, inside_a_node, mesh

DECIDED = {
    "run_name": "",
    "steps": "workload.steps",
    "max_target_length": "model.seq_len",
    "gradient_accumulation_steps": "[parallelism]",
}
"""Arguments of MaxText that the rest of a spec decides, and what decides them; those of batch and mesh beside."""


def faults(run: Run[Any]) -> list[Fault]:
    """All that is wrong with a run, each fault with its key."""
    dense = [*unsupported_degrees(run, ("pp", "cp", "ep", "etp")), *check_experts(run)]
    return [*dense, *_mesh(run), *_config(run), *_profile(run), *_too_few_steps(run), *_env(run)]


def _mesh(run: Run[Any]) -> Iterator[Fault]:
    """Tensor parallelism and shards that do not fit on these nodes."""
    tp, fsdp, inside = run.parallelism.tp, run.parallelism.fsdp, inside_a_node(run)
    if inside % tp:
        message = f"tp = {tp} does not fit into a node of {inside}"
        yield Fault(message=message, key="parallelism.tp", expected=f"a divisor of {inside}")
    elif run.gpus % (tp * fsdp):
        message = f"tp x fsdp = {tp} x {fsdp} = {tp * fsdp} does not divide {run.gpus} GPUs"
        yield Fault(message=message, key="parallelism.fsdp", expected=f"a divisor of {run.gpus // tp}")


def _config(run: Run[Any]) -> Iterator[Fault]:
    """Arguments that would change what is measured behind the back of the figures."""
    decided = {**dict.fromkeys((*batch(run), *mesh(run)), "[parallelism]"), **DECIDED}
    return forbid_options(run.options.config, decided)


def _profile(run: Run[Any]) -> Iterator[Fault]:
    if run.profile is not None:
        always = "both runs of this recipe are always under nsys, whose report feeds the compiler"
        why = always if "nsys" in run.settings else "this recipe runs on CPUs, without a profiler"
        yield Fault(message=f"there is nothing to choose: {why}", key="profile", expected="no [profile] table")


def _too_few_steps(run: Run[Any]) -> Iterator[Fault]:
    """MaxText stops at once where the first step that it shall profile comes after the last."""
    config = {**run.settings["config"], **run.options.config}
    first = config.get("skip_first_n_steps_for_profiler")
    if config.get("profiler") and isinstance(first, int) and run.steps <= first:
        message = f"is {run.steps}, and step {first} is the first that is profiled"
        yield Fault(message=message, key="workload.steps", expected=f"at least {first + 1}")


def _env(run: Run[Any]) -> Iterator[Fault]:
    """One value for all phases would take from each what the recipe compiles it with."""
    if "profile" in run.settings:
        why = "each phase is compiled with flags of its own, the profiled one without latency hiding"
        yield from forbid_env(run, {"XLA_FLAGS": why})
