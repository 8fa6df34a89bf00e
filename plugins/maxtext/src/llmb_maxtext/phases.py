"""The phases of a MaxText run, from the recipe's own data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from llmb import FrozenMap, Phase, Run, key_values, with_paths


def run_phases(run: Run[Any]) -> tuple[Phase, ...]:
    """One training phase, or three where the recipe has profile-guided latency estimation (PGLE).

    Of the three only the performance run is measured: the first is compiled without latency hiding so that its
    profile tells true latencies, and the first rank alone converts that for the compiler of the last.
    """
    if "profile" not in run.settings:
        return (_train(run, "train", run.steps),)
    folder, settings = run.paths.run, run.settings
    report, converted = f"{folder}/nsys/{run.id}-prof.nsys-rep", f"{folder}/pgle/{run.id}.pbtxt"
    files = ("--profile_path", report, "--pgle_output_path", converted)
    convert = Phase(
        name="convert",
        command=_command(run, (f"{folder}/pgle",), *settings["convert"]["command"], *files),
        ranks="first",
        measured=False,
        outputs=(converted,),
    )
    guided = {"xla_gpu_pgle_profile_file_or_directory_path": converted}
    return (
        _train(run, "prof", settings["profile"]["steps"], settings["profile"], outputs=(report,)),
        convert,
        _train(run, "perf", run.steps, settings["performance"], guided),
    )


def _train(
    run: Run[Any],
    name: str,
    steps: int,
    part: Mapping[str, Any] = FrozenMap(),
    more_flags: Mapping[str, Any] = FrozenMap(),
    outputs: tuple[str, ...] = (),
) -> Phase:
    folders: list[str] = []
    nsys = tuple(run.settings.get("nsys", {}).get("command", ()))
    if nsys:
        folders.append(f"{run.paths.run}/nsys")
        nsys += ("-o", f"{folders[-1]}/{run.id}-{name}")
    env = dict(part.get("env", {}))
    flags = {**run.settings.get("xla_flags", {}), **part.get("xla_flags", {}), **more_flags}
    if flags:
        folders.append(f"{run.paths.run}/hlo/{name}")
        env["XLA_FLAGS"] = xla_flags({**flags, "xla_dump_to": folders[-1]})
    arguments = {**config(run), "run_name": f"{run.id}-{name}", "steps": steps, **run.options.config}
    return Phase(
        name=name,
        command=_command(run, folders, *nsys, *run.settings["command"], *key_values(arguments)),
        env=FrozenMap(env),
        measured=name != "prof",
        outputs=outputs,
    )


def _command(run: Run[Any], folders: Iterable[str], *words: str) -> tuple[str, ...]:
    """The words behind the wrapper script, which first makes the folders that they write into."""
    return ("bash", f"{run.paths.run}/jax.sh", *folders, "--", *words)


def xla_flags(flags: Mapping[str, Any]) -> str:
    """XLA's flags as the one string that it reads."""
    return " ".join(f"--{word}" for word in key_values(flags))


def config(run: Run[Any]) -> dict[str, Any]:
    """MaxText's arguments: the recipe's, then what follows from model, batch and mesh."""
    given = with_paths(run.settings["config"], run.paths)
    derived = {
        **batch(run),
        "max_target_length": run.model.seq_len,
        **mesh(run),
    }
    if "model_name" not in given:
        derived |= architecture(run)
    elif run.proxy:
        derived |= {**architecture(run), "override_model_config": True}
    return {**given, **derived}


def batch(run: Run[Any]) -> dict[str, float]:
    """The batch in MaxText's words: samples of one pass over the number of all devices, and passes of one step."""
    passes = run.parallelism.gradient_accumulation(run.gpus)
    share = run.parallelism.global_batch_size / (passes * run.gpus)
    accumulation = {"gradient_accumulation_steps": passes} if passes > 1 else {}
    return {"per_device_batch_size": int(share) if share.is_integer() else share, **accumulation}


def architecture(run: Run[Any]) -> dict[str, int]:
    """The model's sizes in MaxText's words."""
    model = run.model
    return {
        "base_emb_dim": model.hidden,
        "base_num_query_heads": model.heads,
        "base_num_kv_heads": model.query_groups,
        "base_mlp_dim": model.ffn,
        "base_num_decoder_layers": model.layers,
        "head_dim": model.hidden // model.heads,
        "vocab_size": model.vocab,
    }


def mesh(run: Run[Any]) -> dict[str, int]:
    """How the axes lie within a node (ICI) and across nodes (DCN).

    Tensor parallelism and as many shards as fit are kept inside a node; the other shards and all replicas go across.
    On CPUs MaxText knows no nodes: every axis is inside.
    """
    tp, fsdp, inside = run.parallelism.tp, run.parallelism.fsdp, inside_a_node(run)
    fsdp_inside = math.gcd(fsdp, inside // tp)
    fsdp_across = fsdp // fsdp_inside
    return {
        "ici_tensor_parallelism": tp,
        "ici_fsdp_parallelism": fsdp_inside,
        "ici_data_parallelism": inside // (tp * fsdp_inside),
        "dcn_fsdp_parallelism": fsdp_across,
        "dcn_data_parallelism": run.gpus // (inside * fsdp_across),
    }


def inside_a_node(run: Run[Any]) -> int:
    """How many devices the axes of one node have."""
    return run.gpus if run.gpu_type == "cpu" else run.gpus_per_node
