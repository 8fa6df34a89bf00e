"""What Megatron-Bridge, or its release, cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmb import Fault, Run
from llmb_megatron_bridge.command import ARCHITECTURE, profiled_steps

DECIDED = {
    "train.train_iters": "workload.steps",
    "train.micro_batch_size": "parallelism.micro_batch_size",
    "train.global_batch_size": "parallelism.global_batch_size",
    "model.tensor_model_parallel_size": "parallelism.tp",
    "model.pipeline_model_parallel_size": "parallelism.pp",
    "model.virtual_pipeline_model_parallel_size": "parallelism.vp",
    "model.context_parallel_size": "parallelism.cp",
    "ddp.use_megatron_fsdp": "parallelism.fsdp",
    **{key: f"model.{name}" for name, keys in ARCHITECTURE.items() for key in keys},
}
"""Overrides that the rest of the spec decides, and what decides them."""


def faults(run: Run[Any]) -> list[Fault]:
    """All that is wrong with a run, each fault with its key."""
    return [*_parallelism(run), *_fp8_recipe(run), *_config(run), *_profile(run)]


def _parallelism(run: Run[Any]) -> Iterator[Fault]:
    parallelism = run.parallelism
    for name in ("ep", "etp"):
        if (degree := getattr(parallelism, name)) != 1:
            yield Fault(message=f"is {degree}, and the model has no experts", key=f"parallelism.{name}", expected="1")
    named = run.settings["argument_names"]
    for name in ("tp", "pp", "vp", "cp"):
        if (degree := getattr(parallelism, name)) not in (None, 1) and name not in named:
            message = f"is {degree}, and the script of {run.recipe} knows no such thing"
            yield Fault(message=message, key=f"parallelism.{name}", expected="1")
    shards = parallelism.data_parallel(run.gpus) * parallelism.cp
    if parallelism.fsdp not in (1, shards):
        message = f"is {parallelism.fsdp}, and Megatron-FSDP shards over all data-parallel ranks"
        yield Fault(message=message, key="parallelism.fsdp", expected=f"1 or {shards}")
    elif "config_file" not in run.settings and (parallelism.fsdp > 1) != run.settings.get("fsdp", False):
        published = "on" if run.settings.get("fsdp") else "off"
        message = f"is {parallelism.fsdp}, and the scripts of release {run.release} have FSDP {published} here"
        yield Fault(message=message, key="parallelism.fsdp", expected=str(shards if published == "on" else 1))


def _fp8_recipe(run: Run[Any]) -> Iterator[Fault]:
    wanted, has = run.options.fp8_recipe, run.settings.get("fp8_recipe")
    if wanted is None or wanted == has:
        return
    where = f"{run.recipe} on {run.gpu_type} in {run.dtype}"
    expected = f'"{has}", or no such key' if has else 'no such key, or dtype = "fp8"'
    yield Fault(message=f'is "{wanted}", which {where} does not have', key="framework.fp8_recipe", expected=expected)


def _config(run: Run[Any]) -> Iterator[Fault]:
    for name in run.options.config:
        key = f"framework.config.{name}"
        bare = name.lstrip("+~")
        if bare in DECIDED:
            yield Fault(message="is decided by the rest of the spec", key=key, expected=f"{DECIDED[bare]} in its place")
        elif bare.startswith("profiling."):
            yield Fault(message="is decided by the rest of the spec", key=key, expected="[profile] in its place")


def _profile(run: Run[Any]) -> Iterator[Fault]:
    if run.profile is None:
        return
    if run.profile.tool != "nsys":
        expected = '"nsys", or NCCL_DEBUG and its like in [env]'
        yield Fault(message=f'is "{run.profile.tool}"', key="profile.tool", expected=expected)
    if "nsys" not in run.settings:
        yield Fault(message="this recipe runs without a profiler", key="profile", expected="no [profile] table")
        return
    start, stop = profiled_steps(run)
    if not 0 <= start < stop <= run.steps:
        message = f"steps {start} to {stop} are no range within the {run.steps} steps of the run"
        yield Fault(message=message, key="profile", expected=f"start_step < stop_step, both within {run.steps}")
