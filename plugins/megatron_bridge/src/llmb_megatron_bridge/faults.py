"""What Megatron-Bridge, or its release, cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmb import (
    Fault,
    Run,
    check_experts,
    check_query_groups,
    check_sequence,
    forbid_env,
    forbid_key,
    nearest_name,
    unsupported_degrees,
)
from llmb_megatron_bridge.command import ARCHITECTURE

DECIDED = {
    "train.train_iters": "workload.steps",
    "train.micro_batch_size": "parallelism.micro_batch_size",
    "train.global_batch_size": "parallelism.global_batch_size",
    "model.tensor_model_parallel_size": "parallelism.tp",
    "model.pipeline_model_parallel_size": "parallelism.pp",
    "model.virtual_pipeline_model_parallel_size": "parallelism.vp",
    "model.context_parallel_size": "parallelism.cp",
    "ddp.use_megatron_fsdp": "parallelism.fsdp",
    "profiling": "[profile]",
    **{key: f"model.{name}" for name, keys in ARCHITECTURE.items() for key in keys},
}
"""Overrides that the rest of the spec decides, and what decides them."""


def faults(run: Run[Any]) -> list[Fault]:
    """All that is wrong with a run, each fault with its key."""
    model = [*check_experts(run), *check_sequence(run)]
    return [*_parallelism(run), *model, *_fp8_recipe(run), *_config(run), *_profile(run), *_env(run)]


def _parallelism(run: Run[Any]) -> Iterator[Fault]:
    parallelism = run.parallelism
    yield from unsupported_degrees(run, ("ep", "etp"), why="the model has no experts")
    unnamed = [name for name in ("tp", "pp", "vp", "cp") if name not in run.settings["argument_names"]]
    yield from unsupported_degrees(run, unnamed, why=f"the script of {run.recipe} knows no such thing")
    if run.settings.get("whole_query_groups"):
        yield from check_query_groups(run)
    shards = parallelism.data_parallel(run.gpus) * parallelism.cp
    if parallelism.fsdp not in (1, shards):
        message = f"is {parallelism.fsdp}, and Megatron-FSDP shards over all data-parallel ranks"
        yield Fault(message=message, key="parallelism.fsdp", expected=f"1 or {shards}")
    elif parallelism.fsdp == 1 and run.settings.get("fsdp") and "config_file" not in run.settings:
        message = f"is 1, and the scripts of release {run.release} have FSDP on here, with no way to turn it off"
        yield Fault(message=message, key="parallelism.fsdp", expected=str(shards))


def _fp8_recipe(run: Run[Any]) -> Iterator[Fault]:
    wanted, has = run.options.fp8_recipe, run.settings.get("fp8_recipe")
    if wanted is None or wanted == has:
        return
    where = f"{run.recipe} on {run.gpu_type} in {run.dtype}"
    expected = f'"{has}", or no such key' if has else 'no such key, or dtype = "fp8"'
    yield Fault(message=f'is "{wanted}", which {where} does not have', key="framework.fp8_recipe", expected=expected)


def _config(run: Run[Any]) -> Iterator[Fault]:
    """Of a key that the image lacks only the table is known here: Megatron-Bridge itself tells of the others."""
    tables = run.settings.get("config_tables", ())
    for name, value in run.options.config.items():
        bare, key = name.lstrip("+~"), f"framework.config.{name}"
        table = bare.partition(".")[0]
        if fault := forbid_key(bare, DECIDED, key=key):
            yield fault
        elif tables and table not in tables:
            message = f"is in no table of the configuration of release {run.release}"
            expected = f"a key of one of {', '.join(tables)}"
            nearest = nearest_name(table, tables)
            yield Fault(message=message, key=key, expected=expected, nearest=nearest)
        elif name == table and not isinstance(value, str):  # a string may be null, or a whole table
            expected = f"one of its keys, as {table}.name"
            yield Fault(message="would replace a table", key=key, expected=expected)


def _profile(run: Run[Any]) -> Iterator[Fault]:
    if run.profile is None:
        return
    if run.profile.tool != "nsys":
        expected = '"nsys", or NCCL_DEBUG and its like in [env]'
        yield Fault(message=f'is "{run.profile.tool}"', key="profile.tool", expected=expected)
    if "nsys" not in run.settings:
        yield Fault(message="this recipe runs without a profiler", key="profile", expected="no [profile] table")


def _env(run: Run[Any]) -> Iterator[Fault]:
    """Where the scripts are fetched, rank.sh must find them."""
    if "repository" in run.settings:
        yield from forbid_env(run, {"SCRIPTS": "it tells the ranks where the recipe's scripts lie"})
