"""What NeMo, or its recipes, cannot do."""

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
from llmb_nemo_launcher.config import DECIDED, config_tree, has_key, keys_of

FLAGS = {"fp8": "workload.dtype", "tp": "parallelism.tp", "pp": "parallelism.pp"}


def faults(run: Run[Any]) -> list[Fault]:
    """All that is wrong with a run, each fault with its key."""
    return [*_folders(run), *_parallelism(run), *_model(run), *_config(run), *_env(run)]


def _folders(run: Run[Any]) -> Iterator[Fault]:
    for name in ("nemo", "launcher", "index_mapping_dir"):
        folder = getattr(run.options, name)
        if folder is not None and not folder.startswith("/"):
            yield Fault(message=f'is "{folder}"', key=f"framework.{name}", expected="an absolute path")


def _parallelism(run: Run[Any]) -> Iterator[Fault]:
    """What Megatron-Core, as the images of 2024 have it, cannot divide."""
    yield from unsupported_degrees(run, ("etp", "fsdp") if run.model.experts > 1 else ("ep", "etp", "fsdp"))
    yield from check_query_groups(run)  # TransformerConfig of Megatron-Core before 0.16.0, which is of 2026
    yield from _expert_parallel(run)


def _expert_parallel(run: Run[Any]) -> Iterator[Fault]:
    """More ranks for experts than there are that differ in samples, or in parts of a sequence.

    Megatron-Core up to 0.9.0 wants ep to divide dp. Since 0.10.0, tp x ep x pp must divide the GPUs, so ep only dp x cp
    (parallel_state.py, initialize_model_parallel, whose expert_tensor_parallel_size is tp where it is not set). Which
    of them an image has is stated nowhere, so what one of them takes is not refused.
    """
    dp, cp, ep = run.parallelism.data_parallel(run.gpus), run.parallelism.cp, run.parallelism.ep
    if run.model.experts > 1 and dp * cp % ep:
        message = f"is {ep}, which does not divide data parallel x cp = {dp} x {cp} = {dp * cp}"
        yield Fault(message=message, key="parallelism.ep", expected=f"a divisor of {dp * cp}")


def _model(run: Run[Any]) -> Iterator[Fault]:
    published = run.published_model
    if run.model.vocab != published.vocab:
        message = f"is {run.model.vocab}, and the vocabulary is that of the recipe's tokenizer"
        yield Fault(message=message, key="model.vocab", expected=str(published.vocab))
    yield from check_experts(run)
    sequence_parallel = "model.sequence_parallel" in run.settings["flags"].get("tp", ())
    yield from check_sequence(run, tensor_ranks=run.parallelism.tp if sequence_parallel else 1)


def _config(run: Run[Any]) -> Iterator[Fault]:
    tree = config_tree(run)
    flags = {key: FLAGS[cause] for cause, keys in run.settings["flags"].items() for key in keys}
    decided = {**DECIDED, **flags}
    for name, value in run.options.config.items():
        bare, key = name.lstrip("+~"), f"framework.config.{name}"
        if fault := forbid_key(bare, decided, key=key):
            yield fault
        elif name.startswith("~"):
            yield Fault(message="would remove a key", key=key, expected="a key of the configuration")
        elif name == f"+{bare}" and has_key(tree, bare):
            message = "would add a key that is there"
            yield Fault(message=message, key=key, expected=f"{bare}, or ++{bare}")
        elif name == bare and not has_key(tree, bare):
            message, nearest = "is not a key of the configuration", nearest_name(bare, keys_of(tree))
            yield Fault(message=message, key=key, expected=f"one that is, or +{bare} to add it", nearest=nearest)
        elif has_key(tree, bare, table=True) and not isinstance(value, str):  # a string may be null, or a whole table
            yield Fault(message="would replace a table", key=key, expected=f"one of its keys, as {bare}.name")


def _env(run: Run[Any]) -> Iterator[Fault]:
    """Without these there is no trace, or it lies elsewhere; what is traced is for the user to choose."""
    if run.profile and run.profile.tool == "nccl-trace":
        why = 'it is what tool = "nccl-trace" sets'
        yield from forbid_env(run, {"NCCL_DEBUG": why, "NCCL_DEBUG_FILE": why})
