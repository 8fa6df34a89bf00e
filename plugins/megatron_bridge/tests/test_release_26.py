"""Release 26.06: which arguments the script gets, and the environment that follows from the values of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llmb import Job, Run, SpecError
from llmb_megatron_bridge.plugin import MegatronBridge

LoadRun = Callable[..., "Run[Any]"]


def job_of(run: Run[Any]) -> Job:
    return MegatronBridge().build_job(run)


def arguments_of(run: Run[Any]) -> dict[str, str]:
    """Return the arguments that have a short name or that [framework] sets, with their values."""
    words = job_of(run).phases[-1].command
    named = ("--use_megatron_fsdp", "--cuda_graph_impl", "--cuda_graph_scope", "--recompute_modules")
    short = ("-tp", "-pp", "-vp", "-cp", "-ep", "-et", "-mb", "-gb")
    return {word: words[place + 1] for place, word in enumerate(words) if word in (*short, *named)}


def test_the_script_computes_the_values_of_a_published_point(load_run: LoadRun) -> None:
    assert arguments_of(load_run("llama3.1-405b@26.06", "gb300", "fp8", 256)) == {}
    assert arguments_of(load_run("llama3.1-405b@26.06", "b300", "fp8", 256)) == {"-gb": "1536"}


def test_the_script_gets_each_value_that_the_spec_changes(load_run: LoadRun) -> None:
    changed = {"tp": 2, "vp": 1, "global_batch_size": 128}
    options = {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["attn", "mlp"]}
    run = load_run("llama3.1-70b@26.06", "gb300", "nvfp4", 64, parallelism=changed, framework=options)
    assert arguments_of(run) == {
        "-tp": "2",
        "-vp": "None",
        "-gb": "128",
        "--cuda_graph_impl": "transformer_engine",
        "--cuda_graph_scope": "attn,mlp",
    }


def test_the_script_gets_all_values_of_a_number_of_gpus_without_a_point(load_run: LoadRun) -> None:
    passed = arguments_of(load_run("llama3.1-70b@26.06", "h100", "bf16", 96))
    assert passed == {"-tp": "4", "-pp": "4", "-vp": "5", "-cp": "2", "-mb": "1", "-gb": "384"}


@pytest.mark.parametrize(
    ("gpu_type", "chosen", "connections"),
    [("h100", {}, "8"), ("h100", {"tp": 2}, "1"), ("h100", {"cp": 2}, "1"), ("gb200", {"tp": 2}, "32")],
)
def test_the_environment_follows_the_parallelism_of_the_run(
    load_run: LoadRun, gpu_type: str, chosen: dict[str, int], connections: str
) -> None:
    run = load_run("llama3.1-8b@26.06", gpu_type, "fp8", 16, parallelism=chosen)
    assert job_of(run).env["CUDA_DEVICE_MAX_CONNECTIONS"] == connections


@pytest.mark.parametrize(("gpus", "value"), [(256, None), (512, "4"), (1024, "4")])
def test_a_rule_may_depend_on_the_number_of_gpus(load_run: LoadRun, gpus: int, value: str | None) -> None:
    job = job_of(load_run("llama3.1-70b@26.06", "b300", "nvfp4", gpus))
    assert job.env.get("NCCL_IB_QPS_PER_CONNECTION") == value


def test_a_release_without_such_arguments_rejects_these_options(load_run: LoadRun) -> None:
    run = load_run("llama3.1-70b@25.12", "gb300", "nvfp4", 64, framework={"dispatcher": "hybridep"})
    with pytest.raises(SpecError, match=r"framework.dispatcher: the script of .* has no argument for it"):
        job_of(run)
