"""Validation of a run against what NeMo and its recipes support."""

from collections.abc import Iterator, Mapping
from typing import Any

from llmb import (
    Fault,
    Run,
    check_experts,
    check_interleaving,
    check_query_groups,
    check_sequence,
    forbid_env,
    forbid_key,
    nearest_name,
    unsupported_degrees,
)
from llmb_nemo_launcher.nemo_config import SET_BY_LLMB, config_tree, dotted_items

FLAGS = {"fp8": "workload.dtype", "tp": "parallelism.tp", "pp": "parallelism.pp"}


def find_errors(run: Run[Any]) -> list[Fault]:
    """Return all errors of a run, each with its key."""
    errors = [*_check_folders(run), *_check_parallelism(run), *_check_model(run)]
    return [*errors, *_check_config(run), *_check_env(run)]


def _check_folders(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for each folder of the options that is not an absolute path."""
    for name in ("nemo", "launcher", "index_mapping_dir"):
        folder = getattr(run.options, name)
        if folder is not None and not folder.startswith("/"):
            yield Fault(message=f'invalid path "{folder}"', key=f"framework.{name}", expected="an absolute path")


def _check_parallelism(run: Run[Any]) -> Iterator[Fault]:
    """Yield the errors of degrees that the Megatron-Core of the images of 2024 does not support."""
    yield from unsupported_degrees(run, ("etp", "fsdp") if run.model.experts > 1 else ("ep", "etp", "fsdp"))
    yield from check_query_groups(run)  # TransformerConfig of Megatron-Core before 0.16.0 (2026)
    yield from check_interleaving(run)
    yield from _check_expert_parallel(run)


def _check_expert_parallel(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error if ep does not divide dp x cp.

    Megatron-Core up to 0.9.0 requires that ep divides dp. Since 0.10.0, tp x ep x pp must divide the GPUs, so ep must
    divide dp x cp (parallel_state.py, initialize_model_parallel; expert_tensor_parallel_size defaults to tp). The
    publisher does not state the version in an image, so only values that both versions reject are errors.
    """
    dp, cp, ep = run.parallelism.data_parallel(run.gpus), run.parallelism.cp, run.parallelism.ep
    if run.model.experts > 1 and dp * cp % ep:
        message = f"ep = {ep} does not divide data parallel x cp = {dp} x {cp} = {dp * cp}"
        yield Fault(message=message, key="parallelism.ep", expected=f"a divisor of {dp * cp}")


def _check_model(run: Run[Any]) -> Iterator[Fault]:
    """Yield the errors of the model: another vocabulary, experts, sequences that the ranks cannot divide."""
    published = run.published_model
    if run.model.vocab != published.vocab:
        message = f"invalid value {run.model.vocab}: the recipe's tokenizer determines the vocabulary"
        yield Fault(message=message, key="model.vocab", expected=str(published.vocab))
    yield from check_experts(run)
    sequence_parallel = "model.sequence_parallel" in run.settings["flags"].get("tp", ())
    yield from check_sequence(run, tensor_ranks=run.parallelism.tp if sequence_parallel else 1)


def _check_config(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for each override that contradicts the spec or that Hydra would not apply as intended."""
    if not run.options.config:
        return
    known = dotted_items(config_tree(run))
    flags = {key: FLAGS[cause] for cause, keys in run.settings["flags"].items() for key in keys}
    set_by_llmb = {**SET_BY_LLMB, **flags}
    for name, value in run.options.config.items():
        bare, key = name.lstrip("+~"), f"framework.config.{name}"
        if fault := forbid_key(bare, set_by_llmb, key=key):
            yield fault
        elif name.startswith("~"):
            yield Fault(message="would remove a key", key=key, expected="a key of the configuration")
        elif name == f"+{bare}" and bare in known:
            message = "would add a key that already exists"
            yield Fault(message=message, key=key, expected=f"{bare}, or ++{bare}")
        elif name == bare and bare not in known:
            message, nearest = "unknown key of the configuration", nearest_name(bare, known)
            yield Fault(message=message, key=key, expected=f"an existing key, or +{bare} to add it", nearest=nearest)
        elif isinstance(known.get(bare), Mapping) and not isinstance(value, str):  # which may be null or a table
            yield Fault(message="would replace a table", key=key, expected=f"one of its keys, as {bare}.name")


def _check_env(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for variables in [env] that would disable or move an NCCL trace.

    A spec may set NCCL_DEBUG_SUBSYS to select the traced subsystems.
    """
    if run.profile and run.profile.tool == "nccl-trace":
        reason = '[profile] tool = "nccl-trace" sets it'
        yield from forbid_env(run, {"NCCL_DEBUG": reason, "NCCL_DEBUG_FILE": reason})
