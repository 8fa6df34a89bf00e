"""Validation of a run against what torchtitan and its recipes support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from llmb import Fault, Run, forbid_options, format_value, nearest_name, unsupported_degrees
from llmb_torchtitan.job_config import chosen_tables, log_interval

TABLES = (
    *("job", "profiling", "metrics", "model", "optimizer", "lr_scheduler", "training", "parallelism", "checkpoint"),
    *("activation_checkpoint", "compile", "quantize", "comm", "memory_estimation", "fault_tolerance", "experimental"),
    *("validation", "debug"),
)
"""Tables of torchtitan's configuration. Source: JobConfig of torchtitan 0.2.2, config/job_config.py."""

SET_BY_LLMB = {
    "training.steps": "workload.steps",
    "training.seq_len": "model.seq_len",
    "training.local_batch_size": "parallelism.micro_batch_size",
    "training.global_batch_size": "parallelism.global_batch_size",
    "parallelism.tensor_parallel_degree": "parallelism.tp",
    "parallelism.context_parallel_degree": "parallelism.cp",
    "parallelism.pipeline_parallel_degree": "parallelism.pp",
    "parallelism.expert_parallel_degree": "parallelism.ep",
    "parallelism.expert_tensor_parallel_degree": "parallelism.etp",
    "parallelism.data_parallel_shard_degree": "parallelism.fsdp",
    "parallelism.data_parallel_replicate_degree": "parallelism.fsdp",
    "job.dump_folder": "",
}
"""Keys that [framework] config must not set, each with the key of the spec that sets it."""

DATA = {"training.dataset_path": "framework.dataset", "model.hf_assets_path": "framework.tokenizer"}
"""Keys that [framework] config must not set if the recipe names a dataset and a tokenizer."""


def find_errors(run: Run[Any]) -> list[Fault]:
    """Return all errors of a run, each with its key."""
    errors = [*_check_parallelism(run), *_check_experts(run), *_check_sequence(run), *_check_model(run)]
    return [*errors, *_check_config(run), *_check_folders(run), *_check_steps(run), *_check_profile(run)]


def _check_parallelism(run: Run[Any]) -> Iterator[Fault]:
    parallelism = run.parallelism
    yield from unsupported_degrees(run, ("vp",), why="the pipeline schedule determines the stages of a rank")
    replicas = parallelism.data_parallel(run.gpus)
    if replicas % parallelism.fsdp:
        message = f"fsdp = {parallelism.fsdp} does not divide the {replicas} data-parallel ranks"
        yield Fault(message=message, key="parallelism.fsdp", expected=f"a divisor of {replicas}")


def _check_experts(run: Run[Any]) -> Iterator[Fault]:
    """Yield the errors of expert parallelism: torchtitan forms its groups from the shards, cp and tp."""
    parallelism = run.parallelism
    if run.published_model.experts == 1:
        yield from unsupported_degrees(run, ("ep", "etp"), why="the model has no experts")
        return
    if parallelism.etp not in (1, parallelism.tp):
        message = f"invalid value {parallelism.etp}: torchtitan divides experts like other layers, or not at all"
        expected = " or ".join(dict.fromkeys(("1", str(parallelism.tp))))
        yield Fault(message=message, key="parallelism.etp", expected=expected)
    ranks = parallelism.fsdp * parallelism.cp * parallelism.tp
    if ranks % (parallelism.ep * parallelism.etp):
        message = f"ep x etp = {parallelism.ep * parallelism.etp} does not divide fsdp x cp x tp = {ranks}"
        yield Fault(message=message, key="parallelism.ep", expected=f"a divisor of {ranks // parallelism.etp}")


def _check_sequence(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for a sequence that torchtitan cannot divide over tp and over two chunks of each cp rank."""
    tp, cp = run.parallelism.tp, run.parallelism.cp
    parts = 2 * tp * cp  # ParallelDims.seq_len_divisor of torchtitan 0.2.2, also without tp and cp
    if run.seq_len % parts:
        message = f"{run.seq_len} tokens are not divisible by 2 x tp x cp = 2 x {tp} x {cp} = {parts}"
        yield Fault(message=message, key="model.seq_len", expected=f"a multiple of {parts}")


def _check_model(run: Run[Any]) -> Iterator[Fault]:
    published = attrs.asdict(run.published_model)
    for name, size in attrs.asdict(run.model).items():
        if name != "seq_len" and size != published[name]:
            message = f"invalid value {format_value(size)}: torchtitan selects a model by its name, with fixed sizes"
            yield Fault(message=message, key=f"model.{name}", expected=format_value(published[name]))


def _check_config(run: Run[Any]) -> Iterator[Fault]:
    """Yield the errors of tables that torchtitan does not have, and of keys that llmb sets."""
    for table in run.options.config:
        if table not in TABLES:
            expected, nearest = f"one of {', '.join(TABLES)}", nearest_name(table, TABLES)
            message = "unknown table of torchtitan's configuration"
            yield Fault(message=message, key=f"framework.config.{table}", expected=expected, nearest=nearest)
    own = {key: option for key, option in DATA.items() if option.partition(".")[2] in run.settings}
    keys = (f"{table}.{key}" for table, keys in run.options.config.items() for key in keys)
    yield from forbid_options(keys, {**SET_BY_LLMB, **own})


def _check_folders(run: Run[Any]) -> Iterator[Fault]:
    for name in ("dataset", "tokenizer"):
        if getattr(run.options, name) is not None and name not in run.settings:
            message = f"{run.recipe} takes it from torchtitan's repository"
            yield Fault(message=message, key=f"framework.{name}", expected="no such key")
    for name in ("checkout", "dataset", "tokenizer"):
        folder = getattr(run.options, name)
        if folder is not None and not folder.startswith("/"):
            message = f"invalid value {format_value(folder)}"
            yield Fault(message=message, key=f"framework.{name}", expected="an absolute path on the target")


def _check_steps(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error if torchtitan would not print the last step. Core checks the measuring window."""
    interval = log_interval(run)
    if interval is None:
        value = format_value(chosen_tables(run)["metrics"]["log_freq"])
        key = "framework.config.metrics.log_freq"
        yield Fault(message=f"invalid value {value}", key=key, expected="a positive integer")
    elif run.steps % interval:
        message = f"torchtitan prints a line every {interval} steps, so none for step {run.steps}, the last one"
        yield Fault(message=message, key="workload.steps", expected=f"a multiple of {interval}")


def _check_profile(run: Run[Any]) -> Iterator[Fault]:
    if run.profile is not None:
        message = "torchtitan uses its own profiler"
        yield Fault(message=message, key="profile", expected="[framework.config.profiling] instead")
