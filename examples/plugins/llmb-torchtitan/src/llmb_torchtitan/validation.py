"""Validation of a run against what torchtitan and its recipes support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from llmb import Fault, Run, forbid_options, format_value, merged, unsupported_degrees

DECIDED = {
    "training.steps": "workload.steps",
    "training.seq_len": "model.seq_len",
    "training.local_batch_size": "parallelism.micro_batch_size",
    "training.global_batch_size": "parallelism.global_batch_size",
    "parallelism": "[parallelism]",
    "job.dump_folder": "",
}
"""Keys that [framework] config must not set, each with the key of the spec that sets it."""


def find_errors(run: Run[Any]) -> list[Fault]:
    """Return all errors of a run, each with its key."""
    errors = [*_check_parallelism(run), *_check_model(run), *_check_config(run)]
    return [*errors, *_check_steps(run), *_check_profile(run)]


def _check_parallelism(run: Run[Any]) -> Iterator[Fault]:
    yield from unsupported_degrees(run, ("pp", "ep", "etp"))
    replicas = run.parallelism.data_parallel(run.gpus)
    if replicas % run.parallelism.fsdp:
        message = f"fsdp = {run.parallelism.fsdp} does not divide the {replicas} data-parallel ranks"
        yield Fault(message=message, key="parallelism.fsdp", expected=f"a divisor of {replicas}")


def _check_model(run: Run[Any]) -> Iterator[Fault]:
    published = attrs.asdict(run.published_model)
    for name, size in attrs.asdict(run.model).items():
        if name != "seq_len" and size != published[name]:
            message = f"invalid value {size}: torchtitan selects a model by its name, with fixed sizes"
            yield Fault(message=message, key=f"model.{name}", expected=str(published[name]))


def _check_config(run: Run[Any]) -> Iterator[Fault]:
    return forbid_options((f"{table}.{key}" for table, keys in run.options.config.items() for key in keys), DECIDED)


def _check_steps(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error if torchtitan would not print the last step or any step of the measuring window."""
    interval = merged(run.settings["config"], run.options.config)["metrics"]["log_freq"]
    if type(interval) is not int or interval < 1:  # isinstance would accept true
        key = "framework.config.metrics.log_freq"
        yield Fault(message=f"invalid value {format_value(interval)}", key=key, expected="a positive integer")
    elif run.steps % interval:
        message = f"torchtitan prints every {interval}th step, so not the last of {run.steps} steps"
        yield Fault(message=message, key="workload.steps", expected=f"a multiple of {interval}")
    elif run.window != "last" and run.window[1] // interval * interval < run.window[0]:
        message = f"torchtitan prints every {interval}th step, so none of the window {list(run.window)}"
        yield Fault(message=message, key="measure.window", expected=f"a window with a multiple of {interval}")


def _check_profile(run: Run[Any]) -> Iterator[Fault]:
    if run.profile is not None:
        message = "torchtitan uses its own profiler"
        yield Fault(message=message, key="profile", expected="[framework.config.profiling] instead")
