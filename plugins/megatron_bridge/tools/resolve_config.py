"""Resolve configuration and environment of performance scripts of Megatron-Bridge, on a CPU.

``python resolve_config.py BRIDGE MEGATRON`` runs in an environment with the CPU build of PyTorch and the other
requirements of Megatron-Bridge. BRIDGE and MEGATRON are checkouts of Megatron-Bridge and Megatron-LM. Standard input is
a JSON list with the arguments of the launcher for each point; so is standard output, with the results.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import importlib
import json
import logging
import sys
import types
from pathlib import Path
from typing import Any

import stand_ins

DEVICES = {"h100": (9, 0), "b200": (10, 0), "gb200": (10, 0), "b300": (10, 3), "gb300": (10, 3)}
"""The compute capability of each GPU type, which some defaults depend on."""


def resolve(words: list[str]) -> dict[str, Any]:
    """Return the flat configuration that run_script.py passes to the training, for these arguments."""
    parser = importlib.import_module("argument_parser").parse_cli_args()
    overrides, utils = importlib.import_module("utils.overrides"), importlib.import_module("utils.utils")
    arguments, hydra = parser.parse_known_args(words)
    _set_device(arguments.gpu)
    names = (arguments.model_family_name, arguments.model_recipe_name)
    recipe = utils.get_perf_optimized_recipe(
        model_family_name=names[0], model_recipe_name=names[1], train_task=arguments.task, gpu=arguments.gpu,
        compute_dtype=arguments.compute_dtype, mock=arguments.data == "mock", config_variant=arguments.config_variant,
        optimizer_type=getattr(arguments, "optimizer_type", None),
    )  # fmt: skip
    recipe = overrides.set_user_overrides(overrides.set_cli_overrides(recipe, hydra), arguments)
    recipe = overrides.set_post_overrides(
        recipe, *names, arguments.gpu, arguments.num_gpus, arguments.compute_dtype, arguments.task,
        user_gbs=arguments.global_batch_size, config_variant=arguments.config_variant,
    )  # fmt: skip
    return dict(_flatten(recipe, ""))


def environment(words: list[str]) -> dict[str, str]:
    """Return the variables that the launcher's executor and its plugin set for these arguments."""
    arguments = importlib.import_module("argument_parser").parse_cli_args().parse_known_args(words)[0]
    executors, plugins = importlib.import_module("utils.executors"), importlib.import_module("perf_plugins")
    variables = dict(executors.PERF_ENV_VARS)
    if arguments.gpu == "gb200":
        variables |= {"NCCL_NET_GDR_LEVEL": "PHB", "NCCL_NET_GDR_C2C": "1"}
    if arguments.hf_token:
        variables["TRANSFORMERS_OFFLINE"] = "0"
    if arguments.offline:
        variables["HF_HUB_OFFLINE"] = "1"
    executor = types.SimpleNamespace(env_vars=variables)
    plugin = plugins.PerfEnvPlugin()
    degrees = ("tensor_model", "pipeline_model", "context", "expert_model")
    for name, degree in zip(("tp_size", "pp_size", "cp_size", "ep_size"), degrees, strict=True):
        setattr(plugin, name, getattr(arguments, f"{degree}_parallel_size"))
    for name in ("model_family_name", "model_recipe_name", "gpu", "compute_dtype", "config_variant"):
        setattr(plugin, name, getattr(arguments, name))
    plugin.train_task, plugin.moe_a2a_overlap, plugin.enable_vboost = arguments.task, arguments.moe_a2a_overlap, False
    plugin._set_manual_gc = lambda *_arguments: None  # it adds arguments to the script alone
    plugin.setup(None, executor)
    return variables


def _set_device(gpu_type: str) -> None:
    """Let PyTorch report the properties of this GPU type."""
    torch = importlib.import_module("torch")
    major, minor = DEVICES[gpu_type]
    properties = types.SimpleNamespace(major=major, minor=minor, name=gpu_type, total_memory=0, multi_processor_count=0)
    torch.cuda.get_device_properties = lambda *_device: properties
    torch.cuda.get_device_capability = lambda *_device: (major, minor)
    torch.cuda.current_device = lambda: 0


def _flatten(value: Any, name: str) -> Any:
    """Yield the values of nested configurations by their dotted names. A configuration itself is its class."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        yield name, _plain(value)
        return
    if name:
        yield name, f"<{type(value).__module__}.{type(value).__qualname__}>"
    for key, each in vars(value).items():
        yield from _flatten(each, f"{name}.{key}" if name else key)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: functions and objects by their names."""
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if callable(value):
        inner = getattr(value, "func", value)
        return f"<{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', type(inner).__name__)}>"
    return str(value) if type(value).__module__ == "torch" else f"<{type(value).__qualname__}>"


def main(bridge: Path, megatron: Path) -> None:
    """Resolve the points of standard input. An error of one point is its result."""
    stand_ins.install()
    sys.path[:0] = [str(bridge / "src"), str(megatron), str(bridge / "scripts/performance")]
    logging.disable(logging.CRITICAL)
    results: list[dict[str, Any]] = []
    with contextlib.redirect_stdout(sys.stderr):
        for words in json.load(sys.stdin):
            try:
                results.append({"config": resolve(words), "env": environment(words)})
            except Exception as error:  # noqa: BLE001  # the other points are resolved in any case
                results.append({"error": f"{type(error).__name__}: {error}"})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
