"""Captures with nsys in release 26.06: traced events, and the release of nsys over the one in the image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llmb import Run
from llmb_megatron_bridge.plugin import MegatronBridge

LoadRun = Callable[..., "Run[Any]"]
CAPTURE = {"tool": "nsys"}


# LAUNCH of each workload: --nsys_trace
@pytest.mark.parametrize(
    ("recipe", "dtype", "gpus", "events"),
    [
        ("llama3.1-8b", "fp8", 8, "cuda,nvtx"),
        ("llama3.1-70b", "fp8", 64, "cuda,nvtx"),
        ("llama3.1-405b", "fp8", 256, "cuda,nvtx"),
        ("qwen3-30b-a3b", "bf16", 8, "cuda,nvtx"),
        ("qwen3-235b-a22b", "bf16", 256, "cuda,nvtx"),
        ("gpt-oss-120b", "bf16", 64, "cuda,nvtx"),
        ("deepseek-v3", "bf16", 128, "cuda"),
        ("kimi-k2", "fp8", 256, "cuda"),
        ("nemotron-h-56b", "fp8", 32, "cuda"),
        ("nemotron3-nano-30b", "bf16", 8, "cuda"),
        ("nemotron3-super-120b", "bf16", 64, "cuda"),
    ],
)
def test_a_capture_traces_the_events_of_the_publisher(
    load_run: LoadRun, recipe: str, dtype: str, gpus: int, events: str
) -> None:
    run = load_run(f"{recipe}@26.06", "gb300", dtype, gpus, profile=CAPTURE)
    [train] = MegatronBridge().build_job(run).phases
    assert train.command[train.command.index("-t") + 1] == events
