"""Validation of a run against what Megatron-Bridge and the release of its scripts support."""

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
from llmb_megatron_bridge.env_rules import env_of_rules
from llmb_megatron_bridge.script_values import PERFORMANCE
from llmb_megatron_bridge.training_job import ARCHITECTURE, overridable_sizes

SET_BY_LLMB = {
    "train.train_iters": "workload.steps",
    "train.micro_batch_size": "parallelism.micro_batch_size",
    "train.global_batch_size": "parallelism.global_batch_size",
    "model.tensor_model_parallel_size": "parallelism.tp",
    "model.pipeline_model_parallel_size": "parallelism.pp",
    "model.virtual_pipeline_model_parallel_size": "parallelism.vp",
    "model.context_parallel_size": "parallelism.cp",
    "model.expert_model_parallel_size": "parallelism.ep",
    "model.expert_tensor_parallel_size": "parallelism.etp",
    "ddp.use_megatron_fsdp": "parallelism.fsdp",
    "profiling": "[profile]",
    **{key: f"model.{name}" for name, keys in ARCHITECTURE.items() for key in keys},
}
"""Overrides that [framework] config must not set, each with the key of the spec that sets it."""

GROUP_SIZE = "model.microbatch_group_size_per_vp_stage"
"""Override that lets interleaved stages take turns after more than pp micro batches."""

SET_BY_ARGUMENTS = {
    "model.cuda_graph_impl": "framework.cuda_graph_impl",
    "model.cuda_graph_scope": "framework.cuda_graph_scope",
    "model.recompute_modules": "framework.recompute_modules",
    "model.moe_token_dispatcher_type": "framework.dispatcher",
    "model.moe_flex_dispatcher_backend": "framework.dispatcher",
    "model.pipeline_model_parallel_layout": "parallelism.pipeline_layout",
    "logger.save_config_filepath": "",
}
"""Further such overrides for the scripts since release 26.06, which apply their arguments after the overrides."""

RACKS = ("gb300", "gb200")
"""GPU types whose NVLink domain is a rack."""

DOMAIN_RANKS, DOMAIN_SIZE = "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN", "NVLINK_DOMAIN_SIZE"
"""Variables that HybridEP reads, which the recipes set by rules."""

KEPT = ("dataset.num_workers", "dataset.pin_memory", "dataset.persistent_workers")
"""Keys that these scripts keep if they replace the synthetic dataset after the overrides."""


def find_errors(run: Run[Any], values: Mapping[str, Any]) -> list[Fault]:
    """Return all errors of a run, each with its key. ``values`` are the `script_values` of the run."""
    tensor_ranks = run.parallelism.tp if "repository" in run.settings else 1  # with sequence parallelism
    errors = [*_check_parallelism(run), *check_experts(run), *check_sequence(run, tensor_ranks=tensor_ranks)]
    errors += [*_check_fp8_recipe(run), *_check_model(run), *_check_checkpoint(run)]
    return [*errors, *_check_performance(run, values), *_check_config(run), *_check_profile(run), *_check_env(run)]


def _check_parallelism(run: Run[Any]) -> Iterator[Fault]:
    parallelism = run.parallelism
    experts: tuple[str, ...] = ("ep", "etp")
    if run.published_model.experts == 1:
        yield from unsupported_degrees(run, experts, why="the model has no experts")
        experts = ()
    unnamed = [name for name in ("tp", "pp", "vp", "cp", *experts) if name not in run.settings["argument_names"]]
    yield from unsupported_degrees(run, unnamed, why=f"the script of {run.recipe} does not support it")
    if run.settings.get("whole_query_groups"):
        yield from check_query_groups(run)
    if GROUP_SIZE not in run.options.config:
        yield from check_interleaving(run)
    shards = parallelism.data_parallel(run.gpus) * parallelism.cp
    if parallelism.fsdp not in (1, shards):
        message = f"invalid value {parallelism.fsdp}: Megatron-FSDP shards over all data-parallel ranks"
        yield Fault(message=message, key="parallelism.fsdp", expected=f"1 or {shards}")
    elif parallelism.fsdp == 1 and run.settings.get("fsdp") and "config_file" not in run.settings:
        message = f"the scripts of release {run.release} enable FSDP here and have no option to disable it"
        yield Fault(message=message, key="parallelism.fsdp", expected=str(shards))


def _check_model(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for each size, and for a pipeline layout, that the script of the release cannot override."""
    for key in run.overrides:
        table, _, name = key.partition(".")
        known = overridable_sizes(run) if table == "model" else run.settings["argument_names"]
        if (table == "model" or name == "pipeline_layout") and name not in known:
            message = f"the script of {run.recipe} has no argument for it"
            yield Fault(message=message, key=key, expected="no such key")


def _check_checkpoint(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for a checkpoint that is no absolute path, or that the recipe does not start from."""
    key, folder = "framework.checkpoint", run.options.checkpoint
    if folder is None:
        return
    if "checkpoint" not in run.settings.get("folders", {}):
        message = f"{run.recipe} starts from random weights"
        yield Fault(message=message, key=key, expected="no such key")
    elif not folder.startswith("/"):
        yield Fault(message=f'invalid path "{folder}"', key=key, expected="an absolute path")


def _check_fp8_recipe(run: Run[Any]) -> Iterator[Fault]:
    wanted, has = run.options.fp8_recipe, run.settings.get("fp8_recipe")
    if wanted is None or wanted == has:
        return
    message = f'{run.recipe} has no configuration for "{wanted}" on {run.gpu_type} in {run.dtype}'
    expected = f'"{has}", or no such key' if has else 'no such key, or dtype = "fp8"'
    yield Fault(message=message, key="framework.fp8_recipe", expected=expected)


def _check_performance(run: Run[Any], values: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield an error for each option that the script of the release has no argument for, or would not apply."""
    for name in PERFORMANCE:
        chosen, key = getattr(run.options, name), f"framework.{name}"
        if chosen is not None and name not in run.settings["argument_names"]:
            message = f"the script of {run.recipe} has no argument for it"
            yield Fault(message=message, key=key, expected="no such key")
        elif chosen == ():
            yield Fault(message="an empty list", key=key, expected="at least one name, or no such key")
    if run.options.dispatcher == "deepep" and run.gpu_type in RACKS:
        message = f"DeepEP does not support {run.gpu_type}; the script would ignore it"
        yield Fault(message=message, key="framework.dispatcher", expected='"hybridep" or "alltoall"')
    if values["dispatcher"] == "hybridep":
        yield from _check_domain(run, values)
    if values["cuda_graph_impl"] == "transformer_engine" and "full_iteration" in (values["cuda_graph_scope"] or ()):
        message = 'cuda_graph_impl = "transformer_engine" cannot capture "full_iteration"'
        yield Fault(message=message, key="framework.cuda_graph_scope", expected='parts such as ["attn", "mlp"]')


def _check_domain(run: Run[Any], values: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield an error if the recipe's rules place more ranks of HybridEP into an NVLink domain than it has GPUs."""
    env = env_of_rules(run, values)
    ranks, gpus = int(env.get(DOMAIN_RANKS, 0)), int(env.get(DOMAIN_SIZE, run.gpus))
    if ranks > gpus:
        message = f"HybridEP cannot divide the experts over {ranks} GPUs, which are several NVLink domains"
        yield Fault(message=message, key="parallelism.ep", expected=f"at most {gpus}")


def _check_config(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for each override that contradicts the spec, is without effect, or has an invalid table.

    The recipe lists only the tables of the configuration. Megatron-Bridge reports unknown keys when it starts.
    """
    if not run.options.config:
        return
    set_by_llmb, tables = _set_by_llmb(run), run.settings.get("config_tables", ())
    kept = () if "--data" in run.settings.get("arguments", ()) else KEPT
    for name, value in run.options.config.items():
        bare, key = name.lstrip("+~"), f"framework.config.{name}"
        table = bare.partition(".")[0]
        if fault := forbid_key(bare, set_by_llmb, key=key):
            yield fault
        elif "passed" in run.settings and table == "dataset" and bare not in kept:
            expected = f"one of {', '.join(kept)}" if kept else "no such key"
            yield Fault(message="the script replaces the dataset after the overrides", key=key, expected=expected)
        elif tables and table not in tables:
            message = f"unknown table in the configuration of release {run.release}"
            expected = f"a key of one of {', '.join(tables)}"
            nearest = nearest_name(table, tables)
            yield Fault(message=message, key=key, expected=expected, nearest=nearest)
        elif name == table and not isinstance(value, str):  # a string may be null or a complete table
            expected = f"one of its keys, as {table}.name"
            yield Fault(message="would replace a table", key=key, expected=expected)


def _set_by_llmb(run: Run[Any]) -> Mapping[str, str]:
    """Return the overrides that a run must not have, each with the key of the spec that sets it."""
    if "passed" not in run.settings:
        return SET_BY_LLMB
    starts_from = "checkpoint" in run.settings.get("folders", {})
    checkpoint = {"checkpoint.pretrained_checkpoint": "framework.checkpoint"} if starts_from else {}
    return {**SET_BY_LLMB, **SET_BY_ARGUMENTS, **checkpoint}


def _check_profile(run: Run[Any]) -> Iterator[Fault]:
    if run.profile is None:
        return
    if run.profile.tool != "nsys":
        expected = '"nsys", or the NCCL_DEBUG variables in [env]'
        yield Fault(message=f'unsupported tool "{run.profile.tool}"', key="profile.tool", expected=expected)
    if "nsys" not in run.settings:
        yield Fault(message="this recipe runs without a profiler", key="profile", expected="no [profile] table")


def _check_env(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for SCRIPTS in [env], which would hide the folder of the scripts from the rank wrapper."""
    if "repository" in run.settings:
        yield from forbid_env(run, {"SCRIPTS": "the ranks find the recipe's scripts by it"})
