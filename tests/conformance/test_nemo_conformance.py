"""NeMo Launcher: every published point, and other scales, resolve as the publisher's scripts resolve them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from parts.conformance import (
    COMMON,
    Differences,
    differences,
    facts,
    flatten,
    job_env,
    outdated,
    plan_runs,
    step_options,
    unexplained,
)

import llmb

RECIPES = facts("nemo_launcher-24.11")
SET_BY_WRAPPER = "the rank wrapper sets it"
PATH = "a path"
UNREAD = "NeMo Launcher reads it when it submits a job; NeMo does not"
REASONS = {
    **COMMON,
    "env.PYTHONPATH": SET_BY_WRAPPER,
    "env.SLURM_UNBUFFEREDIO": "llmb sets PYTHONUNBUFFERED, so that no process holds output back",
    "env.PYTHONUNBUFFERED": "as SLURM_UNBUFFEREDIO",
    "env.HUGGINGFACE_HUB_CACHE": "a path in the image; configure.sh exports it",
    "env.NCCL_TRACE_ENABLED": "nothing reads it",
    "config.cluster_type": "llmb sets the variables of ranks itself, which NeMo reads for BCP",
    "config.data_dir": PATH,
    "config.run.results_dir": PATH,
    "config.run.time_limit": UNREAD,
    "config.run.dependency": UNREAD,
    "config.exp_manager.explicit_log_dir": PATH,
    "config.exp_manager.wandb_logger_kwargs.name": "create_wandb_logger is false",
    "config.exp_manager.wandb_logger_kwargs.project": "create_wandb_logger is false",
    "config.model.data.index_mapping_dir": PATH,
    "config.model.data.data_prefix": PATH,
    "config.model.tokenizer.type": PATH,
    "config.model.tokenizer.model": PATH,
    "config.model.tokenizer.library": "405B: 24.11 cannot load GPT-2's files; llmb follows 25.02",
    "config.model.tokenizer.vocab_file": "as library",
    "config.model.tokenizer.merge_file": "as library",
}


def config_of(plan: llmb.RunPlan) -> dict[str, Any]:
    """Return the configuration that Hydra composes: the file, and the overrides over it."""
    [text] = [text for path, text in plan.job.files.items() if path.endswith(".yaml")]
    config = dict(flatten(json.loads(text)))
    command = plan.job.phases[-1].command
    overrides = dict(word.split("=", 1) for word in command if "=" in word and not word.startswith("--"))
    return config | {key: _value(text) for key, text in overrides.items()}


def _value(text: str) -> Any:
    """Return the value of an override, whose forms are also JSON."""
    return json.loads(text)


def found_differences(plan: llmb.RunPlan, address: str, point: Mapping[str, Any]) -> Differences:
    common = RECIPES[address]["common"]
    theirs = {key: _rounded(value) for key, value in {**common["config"], **point["config"]}.items()}
    found = differences("config", theirs, {key: _rounded(value) for key, value in config_of(plan).items()})
    if "env" not in point:  # only the configuration of other scales is known
        return found
    env = {**common["env"], **point["env"]}
    options = dict.fromkeys([each for each in point["srun"] if each != "-c"], "")  # -c belongs to bash
    paths = ("--container-image", "--container-mounts")
    published = {name: value for name, value in options.items() if name not in paths}
    published["--mpi"] = env["SLURM_MPI_TYPE"]
    found |= differences("env", env, job_env(plan))
    return found | differences("srun", published, step_options(plan))


def _rounded(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value


def all_differences(kind: str) -> dict[str, Differences]:
    """Return the differences of all points of all recipes, by name."""
    found = {}
    for address, recipe in RECIPES.items():
        for point in recipe[kind]:
            gpu_type, dtype, gpus = point.get("gpu_type", "h100"), point["dtype"], point["gpus"]
            [plan] = plan_runs(address, gpu_type, dtype, gpus)
            found[f"{address}, {gpu_type} {dtype} {gpus}"] = found_differences(plan, address, point)
            assert plan.job.nodes == gpus // 8
    return found


def test_every_published_point_resolves_as_published() -> None:
    found = all_differences("points")

    assert len(found) == 67
    assert unexplained(found, REASONS) == {}
    assert outdated(found, REASONS) == set()


def test_other_scales_resolve_as_the_publisher_computes_them() -> None:
    found: dict[str, Differences] = {}
    for address, recipe in RECIPES.items():
        for point in recipe["other_scales"]:
            if (address, point["gpus"]) == ("nemo_launcher/grok1-314b", 96):
                continue  # the scripts resolve it, but 96 GPUs are not divisible by tensor 4 x pipeline 8 x context 2
            [plan] = plan_runs(address, "h100", point["dtype"], point["gpus"])
            published = {key: _rounded(value) for key, value in point["config"].items()}
            ours = {key: _rounded(value) for key, value in config_of(plan).items() if key in published}
            found[f"{address} {point['dtype']} {point['gpus']}"] = differences("config", published, ours)
            assert (plan.run.proxy, plan.run.differences) == (False, ("workload.gpus",))

    assert len(found) == 12
    assert unexplained(found, REASONS) == {}


def test_a_scale_that_the_publisher_s_layout_cannot_divide_is_rejected() -> None:
    with pytest.raises(llmb.SpecError) as caught:
        plan_runs("nemo_launcher/grok1-314b", "h100", "bf16", 96)
    assert str(caught.value).splitlines()[0] == (
        "workload.gpus: 96 GPUs are not divisible by tp x pp x cp = 4 x 8 x 2 = 64; expected a multiple of 64, "
        "or a [parallelism] of your own instead of the publisher's"
    )


@pytest.mark.parametrize(
    ("recipe", "gpus", "batch", "layers"),
    [
        ("llama3.1-8b", 24, 384, 32),  # 128 * JOB_TOTAL_GPUS / 8
        ("llama3.1-8b", 1024, 16384, 32),
        ("llama3.1-70b", 96, 192, 80),  # 128 * JOB_TOTAL_GPUS / 64
        ("llama3.1-70b", 1536, 3072, 80),
        ("llama3.1-405b", 144, 63, 126),  # 252 * JOB_TOTAL_GPUS / 576
        ("llama3.1-405b", 1584, 693, 126),
        ("grok1-314b", 1280, 2560, 64),  # SLURM_JOB_NUM_NODES * 16
        ("grok1-314b", 1536, 3072, 64),
        ("nemotron4-340b", 192, 48, 96),  # SLURM_JOB_NUM_NODES * 2
        ("nemotron4-340b", 1088, 272, 96),
    ],
)
def test_any_number_of_gpus_has_the_complete_model_and_the_batch_of_configure_sh(
    recipe: str, gpus: int, batch: int, layers: int
) -> None:
    for plan in plan_runs(f"nemo_launcher/{recipe}", "h100", "fp8", gpus):
        config = config_of(plan)
        assert (config["model.global_batch_size"], config["model.num_layers"]) == (batch, layers)
        assert (plan.run.proxy, plan.run.differences, plan.run.baseline) == (False, ("workload.gpus",), None)
