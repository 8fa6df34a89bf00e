"""Stand-in for NeMo 1's pretraining that draws its progress bar; see the README of the stand-ins."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

FILE = Path.cwd().parent / "standin.json"
SETTINGS: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
BAR_WIDTH = 10  # characters
NUMBER_WIDTH = 5  # characters that a number is padded to


def configuration(words: list[str]) -> dict[str, Any]:
    """Return the configuration as NeMo composes it. Hydra rejects a key that is not in the file."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    options = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
    overrides = [word for word in words if not word.startswith("--")]
    with initialize_config_dir(options["config-path"], version_base=None):
        config = compose(options["config-name"], overrides=overrides)
    composed: Any = OmegaConf.to_container(config, resolve=True)
    return dict(composed)


def refuse(message: str) -> None:
    sys.exit(f"ValueError: {message}")


def check_ranks(trainer: dict[str, int]) -> int:
    """Exit unless the rank variables match nodes x devices, as Lightning requires. Return the number of ranks."""
    world, local = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    if world != trainer["num_nodes"] * trainer["devices"]:
        refuse(f"{world} ranks for {trainer['num_nodes']} nodes of {trainer['devices']} devices")
    if not 0 <= local < trainer["devices"]:
        refuse(f"local rank {local} of {trainer['devices']} devices")
    if int(os.environ["RANK"]) != int(os.environ["GROUP_RANK"]) * trainer["devices"] + local:
        refuse("rank, node and local rank contradict each other")
    if os.environ["CUDA_VISIBLE_DEVICES"].count(",") + 1 != trainer["devices"]:
        refuse("a process that does not see all devices")
    if not os.environ["MASTER_ADDR"] or not int(os.environ["MASTER_PORT"]):
        refuse("no master")
    return world


def check_division(model: dict[str, Any], world: int) -> None:
    """Exit if an assertion of Megatron before the training would fail."""
    tp, pp, cp = (model[f"{name}_parallel_size"] for name in ("tensor_model", "pipeline_model", "context"))
    vp = model["virtual_pipeline_model_parallel_size"] or 1
    if world % (tp * pp * cp):
        refuse(f"world size {world} is not divisible by {tp} x {pp} x {cp}")
    replicas = world // (tp * pp * cp)
    if model["global_batch_size"] % (model["micro_batch_size"] * replicas):
        refuse(f"global batch {model['global_batch_size']} is not divisible by {replicas} replicas")
    if model["num_layers"] % (pp * vp) or model["num_attention_heads"] % tp:
        refuse("layers or heads cannot be divided")
    if model["sequence_parallel"] and tp == 1:
        refuse("sequence parallelism needs tensor parallelism")
    if model["encoder_seq_length"] != model["data"]["seq_length"]:
        refuse("the data have another sequence length than the model")


def check_files(model: dict[str, Any]) -> None:
    """Exit unless the data and the tokenizer of the configuration exist."""
    data, tokenizer = model["data"], model["tokenizer"]
    if data["data_impl"] == "mmap":
        for prefix in data["data_prefix"][1::2]:
            for suffix in (".bin", ".idx"):
                if not Path(prefix + suffix).is_file():
                    refuse(f"{prefix}{suffix} is missing")
        if not Path(tokenizer["type"], "tokenizer.json").is_file():
            refuse(f"{tokenizer['type']} is no tokenizer")
    for name in ("vocab_file", "merge_file", "model"):
        path = tokenizer.get(name)
        if path and not Path(path).is_file():
            refuse(f"{path} is missing")
    if not Path(data["index_mapping_dir"]).is_dir():
        refuse(f"{data['index_mapping_dir']} is no folder")


def number(value: float) -> str:
    """Format a number as the bar does: three digits, or all digits if they are as short, padded with zeros."""
    rounded, exact = f"{value:.3g}".replace("e+0", "e+"), str(float(value))
    text = rounded if len(rounded) < len(exact) else exact
    if "e" in text:
        return text
    if "." not in text and len(text) < NUMBER_WIDTH:
        text += "."
    return text.ljust(NUMBER_WIDTH, "0")


def draw(step: int, total: int, values: dict[str, float]) -> None:
    """Draw one bar over the previous bar."""
    full = BAR_WIDTH * step // total
    rest = "".join(f", {name}={number(value)}" for name, value in values.items())
    bar = "█" * full + " " * (BAR_WIDTH - full)
    sys.stdout.write(f"\rEpoch 0: : {100 * step // total:3d}%|{bar}| {step}/{total} [00:{step:02d}<00:00{rest}]")
    sys.stdout.flush()


def train(config: dict[str, Any]) -> None:
    """Draw three bars per step as NeMo does: without values, with those of the previous step, with its own."""
    total, batch = config["trainer"]["max_steps"], config["model"]["global_batch_size"]
    buffer = config["exp_manager"]["step_timing_kwargs"].get("buffer_size") or 1
    steady, nan_step = SETTINGS.get("step_s", 2.5), SETTINGS.get("nan_step", 0)
    times: list[float] = []
    values: dict[str, float] = {}
    for step in range(1, total + 1):
        draw(step, total, {})
        draw(step, total, values)
        times.append(steady if step > 1 else 5 * steady)
        recent = times[-buffer:]
        values = {
            "reduced_train_loss": float("nan") if step == nan_step else 11.0 - step / total,
            "global_step": step - 1,
            "consumed_samples": step * batch,
            "train_step_timing in s": sum(recent) / len(recent),
        }
        draw(step, total, values)
    draw(total, total, {**values, "val_loss": 10.5})
    sys.stdout.write(f"\n`Trainer.fit` stopped: `max_steps={total}` reached.\n")


def main() -> None:
    words = sys.argv[1:]
    given = dict(word.split("=", 1) for word in words)
    world = check_ranks({name: int(given[f"trainer.{name}"]) for name in ("num_nodes", "devices")})
    if os.environ["RANK"] == "0":  # running Hydra on every rank would be slow and test nothing more
        config = configuration(words)
        check_division(config["model"], world)
        check_files(config["model"])
        train(config)


if __name__ == "__main__":
    main()
