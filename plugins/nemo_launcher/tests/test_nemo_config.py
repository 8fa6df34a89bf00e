"""The composed configuration has the published values at every point; invalid overrides are errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llmb import Job, Mount, Run, SpecError, Step, load_recipe
from llmb_nemo_launcher.plugin import NeMoLauncher

from .compose_config import composed

LoadRun = Callable[..., "Run[Any]"]
NAMES = ("llama3.1-8b", "llama3.1-70b", "llama3.1-405b", "grok1-314b", "nemotron4-340b")


def points() -> Iterator[Any]:
    """Yield all points. Those between the smallest and the largest of a GPU type and dtype are slow to compose."""
    for name in NAMES:
        points = load_recipe(f"nemo_launcher/{name}").points
        for point in points:
            alike = [each.gpus for each in points if (each.gpu_type, each.dtype) == (point.gpu_type, point.dtype)]
            marks = () if point.gpus in (min(alike), max(alike)) else (pytest.mark.slow,)
            yield pytest.param(name, point.gpu_type, point.dtype, point.gpus, marks=marks)


# Values that result from the publisher's files and scripts (release 24.11), for all points of a recipe
MODEL: dict[str, dict[str, Any]] = {
    "llama3.1-8b": {
        "hidden_size": 4096, "ffn_hidden_size": 14336, "num_attention_heads": 32, "num_query_groups": 8,
        "init_method_std": 0.01, "sequence_parallel": False, "ub_tp_comm_overlap": False, "gc_interval": 25,
        "activation": "fast-swiglu", "normalization": "rmsnorm", "defer_embedding_wgrad_compute": False,
        "max_position_embeddings": 8192, "apply_query_key_layer_scaling": True, "masked_softmax_fusion": True,
    },
    "llama3.1-70b": {
        "hidden_size": 8192, "ffn_hidden_size": 28672, "num_attention_heads": 64, "num_query_groups": 8,
        "init_method_std": 0.008944, "sequence_parallel": True, "ub_tp_comm_overlap": True, "gc_interval": 25,
        "activation": "fast-swiglu", "normalization": "rmsnorm", "defer_embedding_wgrad_compute": True,
        "wgrad_deferral_limit": 22, "overlap_p2p_comm": True, "batch_p2p_comm": False,
    },
    "llama3.1-405b": {
        "hidden_size": 16384, "ffn_hidden_size": 53248, "num_attention_heads": 128, "num_query_groups": 16,
        "init_method_std": 0.02, "sequence_parallel": True, "ub_tp_comm_overlap": True, "gc_interval": 5,
        "wgrad_deferral_limit": 50, "scale_positional_embedding": True, "overlap_p2p_comm": True,
    },
    "grok1-314b": {
        "hidden_size": 6144, "ffn_hidden_size": 32768, "num_attention_heads": 48, "num_query_groups": 8,
        "init_method_std": 0.008, "sequence_parallel": True, "ub_tp_comm_overlap": True, "gc_interval": 40,
        "num_moe_experts": 8, "moe_router_topk": 2, "moe_token_dispatcher_type": "alltoall", "fp8_hybrid": True,
        "max_position_embeddings": 32768, "rotary_base": 1e6, "activation": "fast-geglu", "reduce_amax": True,
        "apply_query_key_layer_scaling": False, "masked_softmax_fusion": False, "moe_expert_capacity_factor": 1.0,
        "ub_tp_comm_overlap_cfg": None, "get_attention_mask_from_fusion": True, "precision": "bf16",
    },
    "nemotron4-340b": {
        "hidden_size": 18432, "ffn_hidden_size": 73728, "num_attention_heads": 96, "num_query_groups": 8,
        "init_method_std": 0.0063, "sequence_parallel": True, "ub_tp_comm_overlap": True, "gc_interval": 12,
        "activation": "squared-relu", "normalization": "layernorm1p", "layernorm_zero_centered_gamma": True,
        "rotary_percentage": 0.5, "activations_checkpoint_granularity": "selective", "fp8_hybrid": True,
        "overlap_p2p_comm": True, "batch_p2p_comm": False, "wgrad_deferral_limit": 22,
    },
}  # fmt: skip
OPTIMIZER: dict[str, dict[str, Any]] = {
    "llama3.1-8b": {"name": "distributed_fused_adam", "lr": 3e-4, "bucket_cap_mb": 75, "betas": [0.9, 0.95]},
    "llama3.1-70b": {"name": "distributed_fused_adam", "lr": 3e-4, "bucket_cap_mb": 75, "grad_sync_dtype": "bf16"},
    "llama3.1-405b": {"name": "distributed_fused_adam", "lr": 3e-4, "bucket_cap_mb": 125, "weight_decay": 0.1},
    "grok1-314b": {"name": "mcore_distributed_optim", "lr": 1.2e-4, "average_in_collective": True},
    "nemotron4-340b": {"name": "distributed_fused_adam", "lr": 1e-4, "bucket_cap_mb": 50, "dtype": "bf16"},
}
SCHEDULE = {
    "llama3.1-8b": (2000, 0, 3e-5),
    "llama3.1-70b": (2000, 0, 3e-5),
    "llama3.1-405b": (2000, 0, 3e-5),
    "grok1-314b": (636, 11873, 1.2e-5),
    "nemotron4-340b": (500, 0, 1e-5),
}
PRECISION = {"llama3.1-70b": "bf16-mixed", "llama3.1-405b": "bf16-mixed"}
MODEL_PARALLEL = {
    "llama3.1-8b": 1,
    "llama3.1-70b": 16,
    "llama3.1-405b": 72,
    "grok1-314b": 32,
    "nemotron4-340b": 64,
}


def job_of(run: Run[Any]) -> Job:
    return NeMoLauncher().build_job(run)


def errors_of(run: Run[Any]) -> dict[str | None, str]:
    with pytest.raises(SpecError) as raised:
        job_of(run)
    return {fault.key: str(fault) for fault in raised.value.faults}


@pytest.mark.parametrize(("name", "gpu_type", "dtype", "gpus"), [*points()])
def test_the_configuration_has_the_published_values(
    load_run: LoadRun, tmp_path: Path, name: str, gpu_type: str, dtype: str, gpus: int
) -> None:
    run = load_run(name, dtype, gpus, f'workload.gpu_type="{gpu_type}"')
    config = composed(job_of(run), tmp_path)
    model, point = config["model"], load_recipe(run.recipe).find(gpu_type, dtype, gpus)
    assert point is not None
    division, fp8 = point.parallelism, dtype == "fp8"

    expected = {
        "num_layers": point.model.layers,
        "encoder_seq_length": point.model.seq_len,
        "tensor_model_parallel_size": division.tp,
        "pipeline_model_parallel_size": division.pp,
        "virtual_pipeline_model_parallel_size": division.vp,
        "context_parallel_size": division.cp,
        "micro_batch_size": 1,
        "global_batch_size": division.global_batch_size,
        "fp8": fp8,
        "fp8_params": fp8,
        "fp8_hybrid": fp8,
        "transformer_engine": True,
        "mcore_gpt": True,
        "megatron_amp_O2": True,
        **MODEL[name],
    }
    if name == "llama3.1-405b":
        expected["defer_embedding_wgrad_compute"] = gpus != 32
        overlap = model["ub_tp_comm_overlap_cfg"]
        assert (overlap["proj_fprop"]["fp8_buf"], overlap["fc2_fprop"]["fp8_buf"]) == (fp8, fp8)
    if name == "grok1-314b":
        expected["expert_model_parallel_size"] = {8: 2, 16: 4}.get(gpus, 8)
        assert model["optim"]["overlap_param_gather_with_optimizer_step"] is (gpus >= 128)
    assert {key: model[key] for key in expected} == expected
    assert model["data"]["seq_length"] == point.model.seq_len
    assert {key: model["optim"][key] for key in OPTIMIZER[name]} == OPTIMIZER[name]
    schedule = model["optim"]["sched"]
    assert tuple(schedule[key] for key in ("warmup_steps", "constant_steps", "min_lr")) == SCHEDULE[name]
    assert model["nsys_profile"]["enabled"] is False

    trainer, manager = config["trainer"], config["exp_manager"]
    assert (trainer["num_nodes"], trainer["devices"]) == (gpus // 8, 8)
    assert (trainer["max_steps"], trainer["val_check_interval"]) == (50, 50)
    assert trainer["precision"] == PRECISION.get(name, "bf16")
    assert trainer["log_every_n_steps"] == (10 if name == "grok1-314b" else 1)
    buffer = 5 if name in ("llama3.1-405b", "grok1-314b") else None
    assert manager["step_timing_kwargs"].get("buffer_size") == buffer
    assert manager["checkpoint_callback_params"]["model_parallel_size"] == MODEL_PARALLEL[name]
    assert config["cluster_type"] == "BCP"


@pytest.mark.parametrize("size", ["8b", "70b"])
def test_two_sizes_share_data_and_tokenizer(load_run: LoadRun, tmp_path: Path, size: str) -> None:
    model = composed(job_of(load_run(f"llama3.1-{size}", "bf16", 64)), tmp_path)["model"]

    assert model["data"]["data_impl"] == "mmap"
    assert model["data"]["data_prefix"] == [
        *(0.5, "/w/cache/llama3.1-dataset/my-llama_00_text_document"),
        *(0.5, "/w/cache/llama3.1-dataset/my-llama_01_text_document"),
    ]
    assert (model["data"]["reset_position_ids"], model["data"]["reset_attention_mask"]) == (True, True)
    assert model["tokenizer"]["type"] == "/w/cache/tokenizers/meta-llama/Meta-Llama-3-8B"


@pytest.mark.parametrize(("name", "gpus"), [("llama3.1-405b", 576), ("grok1-314b", 512), ("nemotron4-340b", 128)])
def test_the_other_recipes_train_on_synthetic_data(load_run: LoadRun, tmp_path: Path, name: str, gpus: int) -> None:
    data = composed(job_of(load_run(name, "fp8", gpus)), tmp_path)["model"]["data"]

    assert data["data_impl"] == "mock"
    assert not data["data_prefix"]
    assert data["reset_position_ids"] is False


def test_every_path_of_the_configuration_is_below_the_run_or_the_cache(load_run: LoadRun, tmp_path: Path) -> None:
    for name, gpus in (("llama3.1-70b", 64), ("llama3.1-405b", 576), ("grok1-314b", 512), ("nemotron4-340b", 128)):
        text = json.dumps(composed(job_of(load_run(name, "bf16", gpus)), tmp_path))
        paths = set(re.findall(r'"(/[^"]*)"', text))
        assert {path for path in paths if not path.startswith(("/w/runs/RUN/", "/w/cache/"))} == set(), name
        assert "{" not in "".join(paths)


# Values that a spec may change


def test_flags_follow_the_parallelism_of_the_spec(load_run: LoadRun, tmp_path: Path) -> None:
    parallelism = {"tp": 1, "pp": 1, "vp": 1, "cp": 8, "global_batch_size": 64}
    run = load_run("llama3.1-70b", "bf16", 64, parallelism=parallelism)
    model = composed(job_of(run), tmp_path)["model"]

    assert (model["sequence_parallel"], model["ub_tp_comm_overlap"]) == (False, False)
    assert (model["defer_embedding_wgrad_compute"], model["virtual_pipeline_model_parallel_size"]) == (False, None)
    assert (model["context_parallel_size"], model["global_batch_size"]) == (8, 64)


def test_a_changed_model_is_passed_as_its_sizes(load_run: LoadRun, tmp_path: Path) -> None:
    sizes = {"layers": 40, "hidden": 4096, "ffn": 14336, "heads": 32, "query_groups": 4, "seq_len": 4096}
    sizes["head_size"] = 64
    model = composed(job_of(load_run("llama3.1-70b", "bf16", 64, model=sizes)), tmp_path)["model"]

    assert (model["num_layers"], model["hidden_size"], model["ffn_hidden_size"]) == (40, 4096, 14336)
    assert (model["num_attention_heads"], model["num_query_groups"]) == (32, 4)
    assert (model["encoder_seq_length"], model["max_position_embeddings"]) == (4096, 4096)
    assert model["kv_channels"] == 64


def test_overrides_of_the_spec_take_precedence_and_may_add_keys(load_run: LoadRun, tmp_path: Path) -> None:
    overrides = {"model.gc_interval": 100, "model.optim.lr": 0.00005, "+model.new": "[0,1]", "trainer.logger": True}
    run = load_run("llama3.1-70b", "bf16", 64, framework={"config": overrides})
    config = composed(job_of(run), tmp_path)

    assert (config["model"]["gc_interval"], config["model"]["optim"]["lr"]) == (100, 5e-5)
    assert (config["model"]["new"], config["trainer"]["logger"]) == ([0, 1], True)
    assert run.differences == ("framework.config",)


@pytest.mark.parametrize(
    ("recipe", "gpus", "own", "means"),
    [
        ("grok1-314b", 8, {}, [1, 2, 3, 4, 5, 5]),
        ("grok1-314b", 8, {"exp_manager.step_timing_kwargs.buffer_size": 1}, [1] * 6),
        ("llama3.1-70b", 64, {"+exp_manager.step_timing_kwargs.buffer_size": 3}, [1, 2, 3, 3, 3, 3]),
        ("llama3.1-70b", 64, {"+exp_manager.step_timing_kwargs.buffer_size": "2"}, [1, 2, 2, 2, 2, 2]),
    ],
)
def test_an_override_of_the_timing_buffer_is_recorded(
    load_run: LoadRun, recipe: str, gpus: int, own: dict[str, Any], means: list[int]
) -> None:
    parser = NeMoLauncher().parse_log(load_run(recipe, "bf16", gpus, framework={"config": own}))
    bars = "".join(
        f"Epoch 0: : 2%| {step}/6 [00:49<07:25, global_step={step}.0, train_step_timing in s=4.7]\n"
        for step in range(1, 7)
    )
    printed = "|     buffer_size: 2\n" if "2" in own.values() else ""
    found = [*parser.feed(f"{printed}{bars}".encode()), *parser.close()]

    assert [step.mean_of for step in found if isinstance(step, Step)] == means


def test_a_run_with_its_own_index_folder_stays_comparable(load_run: LoadRun, tmp_path: Path) -> None:
    run = load_run("llama3.1-70b", "bf16", 64, framework={"index_mapping_dir": "/fast/index"})

    assert composed(job_of(run), tmp_path)["model"]["data"]["index_mapping_dir"] == "/fast/index"
    assert job_of(run).mounts == (Mount(source="/fast/index", target="/fast/index"),)
    assert run.differences == ()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model.gc_intervall", 3, "did you mean 'model.gc_interval'?"),
        ("model.global_batch_size", 3, "expected parallelism.global_batch_size instead"),
        ("+trainer.max_steps", 3, "expected workload.steps instead"),
        ("model.fp8", True, "expected workload.dtype instead"),
        ("model.sequence_parallel", False, "expected parallelism.tp instead"),
        ("trainer", "{max_steps: 3}", "this table contains trainer.num_nodes, which llmb sets"),
        ("++model.data", "{seq_length: 3}", "expected its other keys one by one"),
        ("model.data.index_mapping_dir", "/fast", "expected framework.index_mapping_dir instead"),
        ("~model.optim", "", "would remove a key"),
        ("+", 3, "invalid key; expected names with dots between them, without blanks"),
        ("+a b", 3, "invalid key"),
        ("model.optim", 3, "would replace a table; expected one of its keys"),
        ("+model.gc_interval", 3, "expected model.gc_interval, or ++model.gc_interval"),
    ],
)
def test_an_override_that_hydra_or_the_metrics_cannot_handle_is_an_error(
    load_run: LoadRun, key: str, value: Any, message: str
) -> None:
    errors = errors_of(load_run("llama3.1-70b", "bf16", 64, framework={"config": {key: value}}))

    assert list(errors) == [f"framework.config.{key}"]
    assert message in errors[f"framework.config.{key}"]


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ({"parallelism": {"fsdp": 2}}, "parallelism.fsdp"),
        ({"parallelism": {"ep": 2}, "model": {"experts": 2}}, "model.experts"),
        ({"parallelism": {"tp": 16, "pp": 1, "vp": 1}}, "parallelism.tp"),
        ({"parallelism": {"tp": 8}, "model": {"query_groups": 4}}, "parallelism.tp"),
        ({"model": {"vocab": 32000}}, "model.vocab"),
        ({"model": {"seq_len": 8191}}, "model.seq_len"),
        ({"model": {"seq_len": 8196}, "parallelism": {"cp": 2}}, "model.seq_len"),
        ({"framework": {"index_mapping_dir": "fast/index"}}, "framework.index_mapping_dir"),
        ({"framework": {"nemo": "NeMo"}}, "framework.nemo"),
    ],
)
def test_unsupported_values_are_errors(load_run: LoadRun, tables: dict[str, Any], key: str) -> None:
    assert key in errors_of(load_run("llama3.1-70b", "bf16", 64, **tables))


@pytest.mark.parametrize(
    ("gpus", "degrees", "error"),
    [
        (
            8,
            {"ep": 8},
            "parallelism.ep: ep = 8 does not divide data parallel x cp = 2 x 1 = 2; expected a divisor of 2",
        ),
        (
            8,
            {"ep": 4},
            "parallelism.ep: ep = 4 does not divide data parallel x cp = 2 x 1 = 2; expected a divisor of 2",
        ),
        (
            40,
            {"pp": 1, "vp": 1, "cp": 1, "global_batch_size": 1000},
            "parallelism.ep: ep = 8 does not divide data parallel x cp = 10 x 1 = 10; expected a divisor of 10",
        ),
        (32, {"cp": 2, "global_batch_size": 1024}, None),  # dp = 4 and cp = 2, so Megatron-Core 0.10.0 accepts ep = 8
    ],
)
def test_expert_parallelism_divides_data_and_context_parallelism(
    load_run: LoadRun, gpus: int, degrees: dict[str, int], error: str | None
) -> None:
    run = load_run("grok1-314b", "bf16", gpus, parallelism=degrees)
    if error is None:
        assert job_of(run).nodes == gpus // 8
    else:
        assert list(errors_of(run).values()) == [error]


@pytest.mark.parametrize(
    ("gpus", "message"),
    [
        (64, "64 GPUs are not divisible by tp x pp x cp = 8 x 9 x 2 = 144"),
        (600, "is 262.5 for 600 GPUs"),
    ],
)
def test_a_number_of_gpus_that_the_publisher_s_rule_cannot_divide_is_an_error(
    load_run: LoadRun, gpus: int, message: str
) -> None:
    with pytest.raises(SpecError, match=message) as raised:
        load_run("llama3.1-405b", "bf16", gpus)
    [fault] = raised.value.faults

    assert fault.key == "workload.gpus"


def test_interleaved_stages_need_groups_of_micro_batches(load_run: LoadRun) -> None:
    [error] = errors_of(load_run("llama3.1-70b", "bf16", 64, parallelism={"global_batch_size": 6})).values()
    assert error.endswith(
        "3 is not divisible by pp = 4, as interleaved stages require; expected a multiple of 8, or vp = 1"
    )


def test_an_unpublished_number_of_gpus_trains_the_complete_model(load_run: LoadRun) -> None:
    run = load_run("llama3.1-405b", "bf16", 288)
    assert (run.model.layers, run.parallelism.global_batch_size, run.proxy, run.baseline) == (126, 126, False, None)
    assert run.name == "llama3.1-405b-h100-bf16-288"

    proxy = load_run("llama3.1-405b", "bf16", 96)
    assert (proxy.model.layers, proxy.proxy, proxy.name) == (21, True, "llama3.1-405b-proxy-h100-bf16-96")

    layout = {"pp": 1, "vp": 1, "global_batch_size": 128}
    own = load_run("llama3.1-405b", "bf16", 64, model={"layers": 14}, parallelism=layout)
    assert (own.model.layers, own.proxy, own.differences) == (14, True, ("workload.gpus",))


def test_a_parallelism_of_the_spec_allows_any_number_of_gpus_without_a_baseline(
    load_run: LoadRun, tmp_path: Path
) -> None:
    run = load_run("llama3.1-70b", "bf16", 32, parallelism={"global_batch_size": 64})

    assert composed(job_of(run), tmp_path)["model"]["global_batch_size"] == 64
    assert (run.baseline, run.differences) == (None, ("workload.gpus",))
