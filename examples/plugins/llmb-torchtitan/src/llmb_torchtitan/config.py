"""torchtitan's job configuration, and what it cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from llmb import Fault, Run, forbid_options, merged, shown, unsupported_degrees, with_paths

DECIDED = {
    "training.steps": "workload.steps",
    "training.seq_len": "model.seq_len",
    "training.local_batch_size": "parallelism.micro_batch_size",
    "training.global_batch_size": "parallelism.global_batch_size",
    "parallelism": "[parallelism]",
    "job.dump_folder": "",
}
"""What the rest of the spec decides, and what decides it."""


def job_config(run: Run[Any], checkout: str) -> dict[str, Any]:
    """The tables: the recipe's, the user's over them, and over both what model, batch and GPUs decide.

    ``{checkout}`` in one of them stands for torchtitan's own folder.
    """
    wanted = merged(run.settings["config"], run.options.config)
    return dict(with_paths(merged(wanted, _decided(run)), run.paths, names={"checkout": checkout}))


def _decided(run: Run[Any]) -> dict[str, Any]:
    """The sequence is sharded over cp, parameters over fsdp x cp; what is left of the GPUs are replicas."""
    parallelism = run.parallelism
    return {
        "job": {"description": run.name, "dump_folder": "{run}/output"},
        "training": {
            "steps": run.steps,
            "seq_len": run.model.seq_len,
            "local_batch_size": parallelism.micro_batch_size,
            "global_batch_size": parallelism.global_batch_size,
        },
        "parallelism": {
            "tensor_parallel_degree": parallelism.tp,
            "context_parallel_degree": parallelism.cp,
            "data_parallel_shard_degree": parallelism.fsdp,
            "data_parallel_replicate_degree": parallelism.data_parallel(run.gpus) // parallelism.fsdp,
        },
    }


def faults(run: Run[Any]) -> list[Fault]:
    """All that is wrong with a run, each fault with its key."""
    return [*_parallelism(run), *_model(run), *_config(run), *_steps(run), *_profile(run)]


def _parallelism(run: Run[Any]) -> Iterator[Fault]:
    yield from unsupported_degrees(run, ("pp", "ep", "etp"))
    replicas = run.parallelism.data_parallel(run.gpus)
    if replicas % run.parallelism.fsdp:
        message = f"is {run.parallelism.fsdp}, and the batch is divided over {replicas}"
        yield Fault(message=message, key="parallelism.fsdp", expected=f"a divisor of {replicas}")


def _model(run: Run[Any]) -> Iterator[Fault]:
    published = attrs.asdict(run.published_model)
    for name, size in attrs.asdict(run.model).items():
        if name != "seq_len" and size != published[name]:
            message = f"is {size}, and torchtitan knows models by their names"
            yield Fault(message=message, key=f"model.{name}", expected=str(published[name]))


def _config(run: Run[Any]) -> Iterator[Fault]:
    return forbid_options((f"{table}.{key}" for table, keys in run.options.config.items() for key in keys), DECIDED)


def _steps(run: Run[Any]) -> Iterator[Fault]:
    """A last step that is not printed would look like one that was not reached."""
    each = merged(run.settings["config"], run.options.config)["metrics"]["log_freq"]
    if type(each) is not int or each < 1:  # true is a whole number to Python
        key = "framework.config.metrics.log_freq"
        yield Fault(message=f"is {shown(each)}", key=key, expected="a whole number of at least 1")
    elif run.steps % each:
        message = f"is {run.steps}, and torchtitan prints each {each}th step"
        yield Fault(message=message, key="workload.steps", expected=f"a multiple of {each}")
    elif run.window != "last" and run.window[1] // each * each < run.window[0]:
        message = f"is {list(run.window)}, and torchtitan prints each {each}th step"
        yield Fault(message=message, key="measure.window", expected=f"a window with a multiple of {each}")


def _profile(run: Run[Any]) -> Iterator[Fault]:
    if run.profile is not None:
        message = "torchtitan has a profiler of its own"
        yield Fault(message=message, key="profile", expected="[framework.config.profiling] in its place")
