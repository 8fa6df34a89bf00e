from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import pytest

import llmb

PlanRun = Callable[..., llmb.RunPlan]


def config_of(run: llmb.RunPlan) -> dict[str, Any]:
    [text] = [text for path, text in run.job.files.items() if path.endswith("/torchtitan.toml")]
    return tomllib.loads(text)


def test_the_job_is_one_task_per_gpu_with_the_recipe_s_configuration(plan_run: PlanRun) -> None:
    run = plan_run()
    [phase] = run.job.phases
    folder = run.job.directory
    assert (run.job.nodes, run.job.tasks_per_node, run.job.gpus_per_node) == (1, 8, 8)
    assert folder.startswith("/w/runs/")
    assert phase.command == (
        *("bash", f"{folder}/titan_rank_wrapper.sh", "python", "-m", "torchtitan.train"),
        *("--job.config_file", f"{folder}/torchtitan.toml"),
    )
    assert run.job.env["TORCHTITAN_HOME"] == "/w/cache/repositories/torchtitan-73a0e6979dd1"
    assert [task.task.kind for task in run.tasks] == ["repository"]
    config = config_of(run)
    assert config["training"] == {
        "dataset_path": "/w/cache/repositories/torchtitan-73a0e6979dd1/tests/assets/c4_test",
        "max_norm": 1.0,
        "dataset": "c4_test",
        "steps": 100,
        "seq_len": 8192,
        "local_batch_size": 2,
        "global_batch_size": 16,
    }
    assert config["parallelism"] == {
        "tensor_parallel_degree": 1,
        "context_parallel_degree": 1,
        "pipeline_parallel_degree": 1,
        "expert_parallel_degree": 1,
        "expert_tensor_parallel_degree": 1,
        "data_parallel_shard_degree": 8,
        "data_parallel_replicate_degree": 1,
    }
    assert "converters" not in config["model"]


def test_with_fp8_the_linear_layers_are_converted(plan_run: PlanRun) -> None:
    config = config_of(plan_run(workload={"dtype": "fp8"}))
    assert config["model"]["converters"] == ["quantize.linear.float8"]
    assert config["quantize"]["linear"]["float8"]["enable_fsdp_float8_all_gather"] is True


def test_parameters_are_sharded_and_the_remaining_gpus_are_replicas(plan_run: PlanRun) -> None:
    degrees = {"fsdp": 2, "tp": 2, "micro_batch_size": 1, "global_batch_size": 4}
    parallelism = config_of(plan_run(parallelism=degrees))["parallelism"]
    assert parallelism["tensor_parallel_degree"] == 2
    assert parallelism["data_parallel_shard_degree"] == 2
    assert parallelism["data_parallel_replicate_degree"] == 2


def test_options_of_the_spec_override_the_recipe(plan_run: PlanRun) -> None:
    options = {"config": {"compile": {"enable": False}, "comm": {"init_timeout_seconds": 900}}, "checkout": "/titan"}
    run = plan_run(framework=options)
    assert config_of(run)["compile"] == {"enable": False, "components": ["model", "loss"]}
    assert config_of(run)["comm"] == {"init_timeout_seconds": 900}
    assert (run.job.env["TORCHTITAN_HOME"], run.tasks) == ("/titan", ())


@pytest.mark.parametrize(
    ("tables", "key", "expected"),
    [
        ({"parallelism": {"ep": 2}}, "parallelism.ep", "1"),
        ({"parallelism": {"pp": 2, "vp": 2, "fsdp": 4}}, "parallelism.vp", "1"),
        ({"parallelism": {"tp": 2, "fsdp": 8}}, "parallelism.fsdp", "a divisor of 4"),
        ({"model": {"layers": 16}}, "model.layers", "32"),
        ({"model": {"seq_len": 8190}, "parallelism": {"tp": 2, "cp": 2, "fsdp": 2}}, "model.seq_len",
         "a multiple of 8"),
        ({"model": {"seq_len": 8191}}, "model.seq_len", "a multiple of 2"),
        ({"workload": {"steps": 95}}, "workload.steps", "a multiple of 10"),
        ({"measure": {"window": [95, 95]}}, "measure.window", "a window with a multiple of 10"),
        ({"measure": {"window": [0, 100]}}, "measure.window", '"last" or [first, last] within 1 and 100'),
        *(
            ({"framework": {"config": {"metrics": {"log_freq": each}}}},
             "framework.config.metrics.log_freq", "a positive integer")
            for each in (0, -1, "x", True, 2.0)
        ),
        ({"framework": {"config": {"training": {"steps": 7}}}}, "framework.config.training.steps", "workload.steps"),
        ({"framework": {"config": {"parallelism": {"tensor_parallel_degree": 2}}}},
         "framework.config.parallelism.tensor_parallel_degree", "parallelism.tp instead"),
        ({"framework": {"config": {"optimiser": {"lr": 1e-4}}}}, "framework.config.optimiser", "one of job, profiling"),
        ({"framework": {"dataset": "/data"}}, "framework.dataset", "no such key"),
        ({"framework": {"checkout": "titan"}}, "framework.checkout", "an absolute path on the target"),
        ({"profile": {"tool": "nsys"}}, "profile", "[framework.config.profiling] instead"),
    ],
)  # fmt: skip
def test_unsupported_values_are_errors_with_their_keys(
    plan_run: PlanRun, tables: dict[str, Any], key: str, expected: str
) -> None:
    with pytest.raises(llmb.SpecError) as raised:
        plan_run(**tables)
    assert expected in {fault.key: fault.expected for fault in raised.value.faults}[key]


DEEPSEEK: dict[str, Any] = {"recipe": "torchtitan/deepseek-v3", "gpu_type": "gb200", "dtype": "bf16", "gpus": 256}


def test_existing_folders_of_data_and_tokenizer_are_mounted_and_not_downloaded(plan_run: PlanRun) -> None:
    run = plan_run(workload=DEEPSEEK, framework={"dataset": "/data/c4", "tokenizer": "/data/tokenizer"})
    assert [task.task.kind for task in run.tasks] == ["repository", "software"]
    assert [(mount.source, mount.read_only) for mount in run.job.mounts] == [
        ("/data/c4", True),
        ("/data/tokenizer", True),
    ]
    config = config_of(run)
    assert (config["training"]["dataset_path"], config["model"]["hf_assets_path"]) == ("/data/c4", "/data/tokenizer")


def test_the_environment_follows_backend_and_degrees_of_the_spec(plan_run: PlanRun) -> None:
    degrees = {"pp": 4, "ep": 32, "fsdp": 64, "global_batch_size": 512}
    env = plan_run(workload=DEEPSEEK, parallelism=degrees).job.env
    assert (env["LOG_RANK"], env["NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"]) == ("192", "32")
    standard = {"parallelism": {"expert_parallel_comm_backend": "standard"}}
    assert "USE_MNNVL" not in plan_run(workload=DEEPSEEK, framework={"config": standard}).job.env


@pytest.mark.parametrize(
    ("tables", "key", "expected"),
    [
        ({"parallelism": {"ep": 128, "fsdp": 64}}, "parallelism.ep", "a divisor of 64"),
        ({"parallelism": {"etp": 2, "ep": 32}}, "parallelism.etp", "1"),
        ({"framework": {"config": {"training": {"dataset_path": "/c4"}}}},
         "framework.config.training.dataset_path", "framework.dataset instead"),
    ],
)  # fmt: skip
def test_unsupported_values_of_a_model_with_experts_are_errors(
    plan_run: PlanRun, tables: dict[str, Any], key: str, expected: str
) -> None:
    with pytest.raises(llmb.SpecError) as raised:
        plan_run(workload=DEEPSEEK, **tables)
    assert expected in {fault.key: fault.expected for fault in raised.value.faults}[key]


@pytest.mark.parametrize("gpus", [8, 128])
@pytest.mark.parametrize(("dtype", "rates"), [("bf16", {8: 6667, 128: 6514}), ("fp8", {8: 8532, 128: 8380})])
def test_the_published_rates_are_the_baselines(dtype: str, rates: dict[int, int], gpus: int) -> None:
    metrics = llmb.metrics(
        "torchtitan/llama3.1-8b", gpu_type="h100", dtype=dtype, gpus=gpus, step_time_s=2 * 8192 / rates[gpus]
    )
    assert metrics.baseline is not None
    assert metrics.baseline.step_time_ratio == pytest.approx(1)
    assert metrics.tokens_per_s_per_gpu == pytest.approx(rates[gpus])


def test_flops_equal_those_of_torchtitan() -> None:
    """The authors report 39 % MFU for BF16 with torch.compile on 8 GPUs."""
    metrics = llmb.metrics("torchtitan/llama3.1-8b", gpu_type="h100", dtype="bf16", gpus=8, step_time_s=2 * 8192 / 6667)
    assert metrics.mfu == pytest.approx(0.39, abs=0.005)
