"""Stand-in for the training, which reads the job configuration and prints the lines of a training."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

TOKENS_PER_S = 5000  # per GPU


def log(text: str) -> None:
    print(f"[titan] 2026-02-21 10:11:12,345 - root - INFO - {text}", flush=True)


def main() -> None:
    config = tomllib.loads(Path(sys.argv[sys.argv.index("--job.config_file") + 1]).read_text())
    training = config["training"]
    degrees = (degree for name, degree in config["parallelism"].items() if not name.startswith("expert"))
    assert Path(config["model"]["hf_assets_path"]).parts[-3:] == ("tests", "assets", "tokenizer")
    ranks = 1
    for degree in degrees:
        ranks *= degree
    assert ranks == int(os.environ["WORLD_SIZE"])
    assert 0 <= int(os.environ["RANK"]) < ranks
    assert os.environ["MASTER_ADDR"]
    log(
        f"Trainer is initialized with sequence length {training['seq_len']}, total steps {training['steps']} (warmup 2)"
    )
    for step in range(1, training["steps"] + 1):
        if step == 1 or step % config["metrics"]["log_freq"] == 0:
            log(
                f"step: {step:2}  loss: {9 - step / 100:8.5f}  grad_norm: {1.5:7.4f}  memory: {70.5:5.2f}GiB(36.72%)  "
                f"tps: {TOKENS_PER_S:,}  tflops: {TOKENS_PER_S * 0.0579:,.2f}  mfu: 22.14%"
            )
    log("Training completed")


main()
