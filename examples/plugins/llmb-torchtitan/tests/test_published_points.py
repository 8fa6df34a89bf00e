"""The six points of DeepSeek-V3 equal what the publisher's launcher produces.

The facts are from NVIDIA/dgxc-benchmarking at tag v26.06.01: the arguments, variables and srun options that
deepseek_v3/pretrain/torchtitan/launch.sh passes for each point, resolved together with deepseek_v3_671b.toml by
torchtitan's own ConfigManager. That resolves -1 for the global batch and for the shards to all that is left.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import llmb

PlanRun = Callable[..., llmb.RunPlan]

POINTS = [
    ("b200", "bf16", 256),
    ("b200", "fp8", 256),
    ("gb200", "bf16", 256),
    ("gb200", "fp8", 256),
    ("h100", "bf16", 512),
    ("h100", "bf16", 1024),
]

OF_THE_RUN = {"job.description", "job.dump_folder", "training.dataset_path", "model.hf_assets_path"}
"""A text and paths, which differ from run to run."""

ALL: dict[str, Any] = {
    "job.print_config": False,
    "profiling.enable_profiling": False,
    "profiling.save_traces_folder": "profile_trace",
    "profiling.profile_freq": 10,
    "profiling.enable_memory_snapshot": False,
    "profiling.save_memory_snapshot_folder": "memory_snapshot",
    "metrics.log_freq": 10,
    "metrics.disable_color_printing": True,
    "metrics.enable_tensorboard": False,
    "metrics.save_tb_folder": "tb",
    "metrics.enable_wandb": False,
    "model.name": "deepseek_v3",
    "model.flavor": "671B",
    "comm.init_timeout_seconds": 1200,
    "comm.train_timeout_seconds": 300,
    "optimizer.name": "AdamW",
    "optimizer.lr": 2.2e-4,
    "optimizer.eps": 1e-8,
    "lr_scheduler.warmup_steps": 100,
    "lr_scheduler.decay_ratio": 0.8,
    "lr_scheduler.decay_type": "cosine",
    "lr_scheduler.min_lr_factor": 0.1,
    "training.local_batch_size": 8,
    "training.global_batch_size": 2048,
    "training.seq_len": 4096,
    "training.max_norm": 1.0,
    "training.steps": 60,
    "training.dataset": "c4",
    "parallelism.data_parallel_replicate_degree": 1,
    "parallelism.data_parallel_shard_degree": 256,
    "parallelism.fsdp_reshard_after_forward": "default",
    "parallelism.tensor_parallel_degree": 1,
    "parallelism.enable_async_tensor_parallel": False,
    "parallelism.context_parallel_degree": 1,
    "parallelism.pipeline_parallel_degree": 1,
    "parallelism.pipeline_parallel_schedule": "Interleaved1F1B",
    "parallelism.pipeline_parallel_first_stage_less_layers": 1,
    "parallelism.pipeline_parallel_last_stage_less_layers": 1,
    "parallelism.expert_parallel_degree": 64,
    "parallelism.expert_tensor_parallel_degree": 1,
    "parallelism.expert_parallel_comm_backend": "deepep",
    "checkpoint.enable": False,
    "checkpoint.folder": "checkpoint",
    "checkpoint.interval": 500,
    "checkpoint.last_save_model_only": True,
    "checkpoint.export_dtype": "float32",
    "checkpoint.async_mode": "disabled",
    "activation_checkpoint.mode": "full",
    "activation_checkpoint.selective_ac_option": "op",
    "compile.enable": True,
    "compile.components": ["model"],
    "debug.moe_force_load_balance": True,
    "quantize.linear.float8.enable_fsdp_float8_all_gather": False,
    "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp": False,
    "quantize.linear.float8.filter_fqns": ["output", "router.gate"],
    "quantize.grouped_mm.float8.fqns": ["experts"],
}

H100 = {
    "activation_checkpoint.mode": "selective",
    "parallelism.pipeline_parallel_degree": 8,
    "parallelism.pipeline_parallel_schedule": "1F1B",
    "training.local_batch_size": 16,
}

GB200 = {
    "comm.init_timeout_seconds": 1500,
    "comm.train_timeout_seconds": 2000,
    "parallelism.expert_parallel_comm_backend": "hybridep",
    "parallelism.hybridep.enable_non_blocking": True,
    "parallelism.hybridep.moe_expert_capacity_factor": 0.03125,
}

FP8 = {
    "model.converters": ["quantize.linear.mx", "quantize.grouped_mm.mx"],
    "quantize.linear.mx.recipe_name": "mxfp8_cublas",
    "quantize.grouped_mm.mx.recipe_name": "mxfp8",
    "quantize.grouped_mm.mx.fqns": ["experts"],
}

ENV = {
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    "TORCHINDUCTOR_MIX_ORDER_REDUCTION": "0",
    "ONE_LOGGER_JOB_CATEGORY": "production",
}

HYBRIDEP_ENV = {
    "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN": "64",
    "USE_MNNVL": "1",
    "NCCL_IB_TIMEOUT": "22",
    "RDMA_CORE_HOME": "/usr",
}


def expected_config(gpu_type: str, dtype: str, gpus: int) -> dict[str, Any]:
    config = ALL | (FP8 if dtype == "fp8" else {}) | {"h100": H100, "gb200": GB200}.get(gpu_type, {})
    if gpu_type == "h100":
        shards = {512: 64, 1024: 128}[gpus]
        config |= {"parallelism.data_parallel_shard_degree": shards, "training.global_batch_size": 16 * shards}
    return config


def flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def plan_point(plan_run: PlanRun, gpu_type: str, dtype: str, gpus: int) -> llmb.RunPlan:
    recipe = "torchtitan/deepseek-v3@26.06"
    return plan_run(workload={"recipe": recipe, "gpu_type": gpu_type, "dtype": dtype, "gpus": gpus})


def test_the_recipe_has_the_published_points() -> None:
    points = llmb.load_recipe("torchtitan/deepseek-v3").points
    assert {(point.gpu_type, point.dtype, point.gpus) for point in points} == {*POINTS}
    assert len(points) == 6
    assert {point.variant for point in points if point.dtype == "fp8"} == {"mxfp8"}


@pytest.mark.parametrize("point", POINTS)
def test_the_configuration_equals_the_published_one_key_by_key(plan_run: PlanRun, point: tuple[str, str, int]) -> None:
    files = plan_point(plan_run, *point).job.files
    [text] = [text for path, text in files.items() if path.endswith("/torchtitan.toml")]
    config = dict(flat(tomllib.loads(text)))
    assert {key: value for key, value in config.items() if key not in OF_THE_RUN} == expected_config(*point)
    assert config["training.dataset_path"] == "/w/cache/datasets/c4"
    assert config["model.hf_assets_path"] == "/w/cache/tokenizers/DeepSeek-V3.1-Base"


@pytest.mark.parametrize("point", POINTS)
def test_the_environment_equals_the_published_one(plan_run: PlanRun, point: tuple[str, str, int]) -> None:
    gpu_type, _, gpus = point
    rank = {256: "224", 512: "448", 1024: "896"}[gpus]
    expected = {**ENV, "LOG_RANK": rank, **(HYBRIDEP_ENV if gpu_type == "gb200" else {})}
    env = dict(plan_point(plan_run, *point).job.env)
    assert env.pop("TORCHTITAN_HOME") == "/w/cache/repositories/torchtitan-b5351f166b27"
    assert env == expected


@pytest.mark.parametrize("point", POINTS)
def test_the_job_equals_the_published_one(plan_run: PlanRun, point: tuple[str, str, int]) -> None:
    run = plan_point(plan_run, *point)
    [phase] = run.job.phases
    per_node = 4 if point[0] == "gb200" else 8
    assert (run.job.nodes, run.job.tasks_per_node) == (point[2] // per_node, per_node)
    assert run.job.time_limit_s == 2 * 3600
    assert run.job.environment.base == llmb.Image(ref="nvcr.io/nvidia/pytorch:25.12-py3")
    assert phase.command[2].startswith("/w/cache/software/torchtitan-")
    assert phase.command[3:5] == ("-m", "torchtitan.train")
    assert run.job.domain_nodes == (16 if point[0] == "gb200" else None)


@pytest.mark.parametrize("point", POINTS)
def test_the_software_in_the_image_is_that_of_the_publisher(plan_run: PlanRun, point: tuple[str, str, int]) -> None:
    """The versions are those of install_torchtitan_to_container.sh."""
    run = plan_point(plan_run, *point)
    [task] = [each.task for each in run.tasks if each.task.kind == "software"]
    assert isinstance(task.work, llmb.Job)
    assert task.work.environment == llmb.Environment(base=run.job.environment.base)
    [phase] = task.work.phases
    torch = {"TORCH": "torch==2.11.0 torchvision==0.26.0 torchaudio==2.11.0"}
    main = {"DEEPEP_COMMIT": "567632dd59810d77b3cc05553df953cc0f779799", "NVSHMEM": "3.6.5", "CCCL": "v2.8.1"}
    hybrid = {"DEEPEP_COMMIT": "7febc6e25660af0f54d95dd781ecdcd62265ecca", "RDMA_CORE": "v60.0"}
    torchao = {"TORCHAO_COMMIT": "7bfc8da876a4360d4108e6882e0fda6ec4cb601d"}
    expected = {
        "h100": {**main, "TORCH_CUDA_ARCH_LIST": "9.0"},
        "b200": {**main, **torchao, "TORCH_CUDA_ARCH_LIST": "10.0"},
        "gb200": {**hybrid, **torchao, "TORCH_CUDA_ARCH_LIST": "10.0", "HYBRID_EP_MULTINODE": "1"},
    }
    assert phase.env == {**torch, **expected[point[0]]}


def test_a_python_of_the_spec_replaces_the_software(plan_run: PlanRun) -> None:
    recipe = "torchtitan/deepseek-v3@26.06"
    workload = {"recipe": recipe, "gpu_type": "b200", "dtype": "bf16", "gpus": 256}
    run = plan_run(workload=workload, framework={"python": "/opt/bin/python"})
    assert run.job.phases[0].command[2] == "/opt/bin/python"
    assert "software" not in [task.task.kind for task in run.tasks]


def test_tokenizer_and_data_set_are_downloaded_once(plan_run: PlanRun) -> None:
    run = plan_point(plan_run, "b200", "bf16", 256)
    assert [task.task.kind for task in run.tasks] == [
        "repository",
        "software",
        "tokenizer deepseek-ai/DeepSeek-V3.1-Base",
        "dataset allenai/c4",
    ]


def test_flops_are_those_of_torchtitan() -> None:
    """Torchtitan 0.2.2 computes 281,158,232,064 FLOPs for each token of this model, from its parameters."""
    metrics = llmb.metrics("torchtitan/deepseek-v3", gpu_type="b200", dtype="bf16", gpus=256, step_time_s=10)
    assert metrics.flops_per_sequence is not None
    assert metrics.flops_per_sequence / 4096 == pytest.approx(281_158_232_064, rel=0.003)


LOG = Path(__file__).parent / "logs/dgx-cloud-26.06-format.log"
"""Invented: 220 tokens/s on each GPU at the first step, and 3,209 at the last one."""


def test_a_log_is_parsed_with_the_batch_of_its_recipe() -> None:
    log = llmb.parse(LOG, recipe="torchtitan/deepseek-v3", gpus=256)
    assert log.steps[0].time_s == pytest.approx(8 * 4096 / 220)


def test_a_log_of_the_fork_is_graded_with_the_flops_of_the_model() -> None:
    grade = llmb.grade(LOG, recipe="torchtitan/deepseek-v3", gpu_type="b200", dtype="bf16", gpus=256)
    assert grade.metrics is not None
    assert grade.metrics.model_tflops_per_gpu == pytest.approx(3209 * 281.158e9 / 1e12, rel=0.003)
    assert grade.metrics.mfu == pytest.approx(902.24 / 2250)
