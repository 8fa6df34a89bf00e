"""Release 26.06: which arguments the script gets, and the environment that follows from the values of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from llmb import Job, Run, SpecError
from llmb.analysis.flops import flops_per_sequence
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


@pytest.mark.parametrize("release", ["25.12", "26.06"])
@pytest.mark.parametrize(
    ("gpu_type", "chosen", "connections"),
    [("h100", {}, "8"), ("h100", {"tp": 2}, "1"), ("h100", {"cp": 2}, "1"), ("gb200", {"tp": 2}, "32")],
)
def test_the_environment_follows_the_parallelism_of_the_run(
    load_run: LoadRun, gpu_type: str, chosen: dict[str, int], connections: str, release: str
) -> None:
    run = load_run(f"llama3.1-8b@{release}", gpu_type, "fp8", 16, parallelism=chosen)
    assert job_of(run).env["CUDA_DEVICE_MAX_CONNECTIONS"] == connections


@pytest.mark.parametrize(("pp", "size"), [(1, None), (2, "2097152")])
def test_pipelines_of_25_12_have_larger_chunks_of_point_to_point_communication(
    load_run: LoadRun, pp: int, size: str | None
) -> None:
    run = load_run("llama3.1-70b@25.12", "gb200", "nvfp4", 64, parallelism={"pp": pp, "vp": 1})
    assert job_of(run).env.get("NCCL_P2P_NET_CHUNKSIZE") == size


def test_experts_of_hybridep_stay_within_a_rack(load_run: LoadRun) -> None:
    run = load_run("kimi-k2@26.06", "gb300", "fp8", 512, parallelism={"ep": 128})
    message = "HybridEP cannot divide the experts over 128 GPUs, which are several NVLink domains; expected at most 72"
    assert errors_of(run) == f"parallelism.ep: {message}"


def test_the_overlap_of_communication_between_experts_needs_several_connections(load_run: LoadRun) -> None:
    run = load_run("qwen3-235b-a22b@26.06", "h100", "bf16", 256)
    assert (run.parallelism.tp, job_of(run).env["CUDA_DEVICE_MAX_CONNECTIONS"]) == (2, "8")


@pytest.mark.parametrize(("gpus", "value"), [(256, None), (512, "4"), (1024, "4")])
def test_a_rule_may_depend_on_the_number_of_gpus(load_run: LoadRun, gpus: int, value: str | None) -> None:
    job = job_of(load_run("llama3.1-70b@26.06", "b300", "nvfp4", gpus))
    assert job.env.get("NCCL_IB_QPS_PER_CONNECTION") == value


def errors_of(run: Run[Any]) -> str:
    with pytest.raises(SpecError) as raised:
        job_of(run)
    [fault] = raised.value.faults
    return str(fault)


@pytest.mark.parametrize(
    ("recipe", "options", "message"),
    [
        ("llama3.1-8b", {"cuda_graph_scope": []}, "cuda_graph_scope: an empty list; expected at least one name"),
        ("qwen3-30b-a3b", {"recompute_modules": []}, "recompute_modules: an empty list; expected at least one name"),
        (
            "llama3.1-8b",
            {"cuda_graph_impl": "transformer_engine"},
            r'cuda_graph_scope: cuda_graph_impl = "transformer_engine" cannot capture "full_iteration"; expected parts',
        ),
        ("qwen3-30b-a3b", {"dispatcher": "deepep"}, "dispatcher: DeepEP does not support gb300"),
    ],
)
def test_options_that_the_script_would_ignore_or_reject_are_errors(
    load_run: LoadRun, recipe: str, options: dict[str, Any], message: str
) -> None:
    run = load_run(f"{recipe}@26.06", "gb300", "fp8", 8, framework=options)
    assert re.match(f"framework.{message}", errors_of(run))


@pytest.mark.parametrize("name", ["cuda_graph_scope", "recompute_modules"])
def test_names_in_options_are_checked(load_run: LoadRun, name: str) -> None:
    with pytest.raises(SpecError, match=rf'framework.{name}\[0\]: invalid value "atn"; expected'):
        load_run("llama3.1-8b@26.06", "gb300", "fp8", 8, framework={name: ["atn"]})


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("model.cuda_graph_scope", "framework.cuda_graph_scope instead"),
        ("model.moe_token_dispatcher_type", "framework.dispatcher instead"),
        ("model.pipeline_model_parallel_layout", "parallelism.pipeline_layout instead"),
        ("dataset.random_seed", "one of dataset.num_workers, dataset.pin_memory, dataset.persistent_workers"),
    ],
)
def test_overrides_that_the_script_replaces_by_its_arguments_are_errors(
    load_run: LoadRun, key: str, expected: str
) -> None:
    run = load_run("qwen3-30b-a3b@26.06", "gb300", "fp8", 8, framework={"config": {key: 1}})
    assert errors_of(run).endswith(f"expected {expected}")
    assert job_of(load_run("llama3.1-8b@25.12", "gb300", "fp8", 8, framework={"config": {key: 1}}))
    kept = {"dataset.num_workers": 4}
    assert job_of(load_run("qwen3-30b-a3b@26.06", "gb300", "fp8", 8, framework={"config": kept}))


def test_the_resolved_configuration_is_in_the_folder_of_the_run(load_run: LoadRun) -> None:
    words = job_of(load_run("llama3.1-8b@26.06", "gb300", "fp8", 8)).phases[-1].command
    assert words[words.index("--save_config_filepath") + 1] == "/w/runs/RUN/ConfigContainer.yaml"


def test_a_release_without_such_arguments_rejects_these_options(load_run: LoadRun) -> None:
    run = load_run("llama3.1-70b@25.12", "gb300", "nvfp4", 64, framework={"dispatcher": "hybridep"})
    with pytest.raises(SpecError, match=r"framework.dispatcher: the script of .* has no argument for it"):
        job_of(run)


def test_expert_parallelism_sets_its_arguments_and_the_environment_of_hybridep(load_run: LoadRun) -> None:
    run = load_run("qwen3-30b-a3b@26.06", "gb300", "bf16", 16, parallelism={"ep": 4, "etp": 2})
    assert arguments_of(run) == {"-ep": "4", "-et": "2"}
    assert job_of(run).env["NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"] == "4"


@pytest.mark.parametrize(("gpu_type", "domain", "ranks"), [("gb300", "72", "16"), ("h100", "8", "8")])
def test_an_nvlink_domain_is_a_rack_or_a_node(load_run: LoadRun, gpu_type: str, domain: str, ranks: str) -> None:
    env = job_of(load_run("qwen3-30b-a3b@26.06", gpu_type, "bf16", 16, parallelism={"ep": 16})).env
    assert (env["NVLINK_DOMAIN_SIZE"], env["NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"]) == (domain, ranks)


def test_another_dispatcher_has_another_environment(load_run: LoadRun) -> None:
    run = load_run("qwen3-30b-a3b@26.06", "h100", "bf16", 16, framework={"dispatcher": "alltoall"})
    words = job_of(run).phases[-1].command
    assert words[words.index("--moe_flex_dispatcher_backend") + 1] == "None"
    assert "USE_MNNVL" not in job_of(run).env
    assert job_of(run).env["NVTE_FWD_LAYERNORM_SM_MARGIN"] == "16"


def test_a_proxy_has_the_published_sizes_and_others_are_passed(load_run: LoadRun) -> None:
    run = load_run("deepseek-v3@26.06", "gb300", "bf16", 8, model={"layers": 12})
    words = job_of(run).phases[-1].command
    assert words[words.index("--num_layers") + 1] == "12"
    assert words[words.index("--hidden_size") + 1] == "1024"
    assert run.proxy


def test_a_time_limit_may_depend_on_the_gpu_type(load_run: LoadRun) -> None:
    limits = {gpu: job_of(load_run("kimi-k2@26.06", gpu, "fp8", 256)).time_limit_s for gpu in ("gb300", "b300")}
    assert limits == {"gb300": 1200, "b300": 2700}


def test_only_the_rotary_embedding_of_405b_is_scaled(load_run: LoadRun) -> None:
    def config_of(recipe: str) -> dict[str, Any]:
        files = job_of(load_run(recipe, "h100", "fp8", 1024 if "405b" in recipe else 64)).files
        [text] = [text for path, text in files.items() if path.endswith("config.json")]
        return dict(json.loads(text))

    assert config_of("llama3.1-405b@26.06")["rope_scaling"]["factor"] == 8.0
    assert "rope_scaling" not in config_of("llama3.1-70b@26.06")


def overrides_of(run: Run[Any]) -> dict[str, str]:
    """Return the overrides of the model in the configuration."""
    words = job_of(run).phases[-1].command
    return dict(word.split("=", 1) for word in words if word.startswith("model."))


@pytest.mark.parametrize(
    ("recipe", "point", "model", "overrides"),
    [
        ("deepseek-v3", ("gb200", "fp8", 256), {"shared_expert_ffn": 0}, {"moe_shared_expert_intermediate_size": "0"}),
        ("deepseek-v3", ("gb200", "fp8", 256), {"mla": {"kv_rank": 256}}, {"kv_lora_rank": "256"}),
        ("deepseek-v3", ("gb200", "fp8", 256), {"mla": {"value_head_size": 64}}, {"v_head_dim": "64"}),
        (
            "deepseek-v3",
            ("gb200", "fp8", 256),
            {"experts": 128, "top_k": 4, "expert_ffn": 1024},
            {"num_moe_experts": "128", "moe_router_topk": "4", "moe_ffn_hidden_size": "1024"},
        ),
        ("qwen3-30b-a3b", ("gb300", "bf16", 8), {"head_size": 64}, {"kv_channels": "64"}),
        (
            "gpt-oss-120b",
            ("gb300", "bf16", 64),
            {"sliding_window": 256, "full_attention_every": 4},
            {"window_size": "[256,0]", "window_attn_skip_freq": "4"},
        ),
        ("nemotron3-super-120b", ("gb300", "bf16", 64), {"latent_size": 512}, {"moe_latent_size": "512"}),
        ("nemotron3-super-120b", ("gb300", "bf16", 64), {"mtp_depth": 0}, {"mtp_num_layers": "null"}),
        (
            "nemotron3-super-120b",
            ("gb300", "bf16", 64),
            {"layers": 4, "layer_pattern": "ME*E", "mamba": {"state": 64}},
            {"num_layers": "4", "hybrid_layer_pattern": "ME*E", "mamba_state_dim": "64"},
        ),
    ],
)
def test_megatron_bridge_gets_each_size_of_another_model(
    load_run: LoadRun, recipe: str, point: tuple[str, str, int], model: dict[str, Any], overrides: dict[str, str]
) -> None:
    run = load_run(f"{recipe}@26.06", *point, model=model)
    assert overrides_of(run) == {f"model.{name}": value for name, value in overrides.items()}
    assert run.proxy


def test_the_flops_of_another_model_follow_its_sizes(load_run: LoadRun) -> None:
    run = load_run("deepseek-v3@26.06", "gb200", "fp8", 256, model={"shared_expert_ffn": 4096})
    counted, published = (
        flops_per_sequence(model, run.flop_formula, tp=1) for model in (run.model, run.published_model)
    )
    gated, layers_with_experts = 3, 58 + 1  # 61 without 3 dense layers, and the layer of multi-token prediction
    assert counted - published == 6 * 7168 * gated * 2048 * layers_with_experts * 4096


def test_a_spec_may_divide_the_layers_itself(load_run: LoadRun) -> None:
    chosen = {"pp": 2, "vp": 1, "pipeline_layout": "Et*31|t*30mL"}
    command = job_of(load_run("deepseek-v3@26.06", "gb200", "fp8", 256, parallelism=chosen)).phases[-1].command
    assert command[command.index("--pipeline_model_parallel_layout") + 1] == "Et*31|t*30mL"
    assert command[command.index("-pp") + 1] == "2"


def test_the_first_dense_layers_are_an_argument_of_some_scripts(load_run: LoadRun) -> None:
    model = {"dense_layers": 1}
    command = (
        job_of(load_run("kimi-k2@26.06", "gb300", "fp8", 256, model=model | {"dense_layers": 3})).phases[-1].command
    )
    assert command[command.index("--first_k_dense_replace") + 1] == "3"
    with pytest.raises(SpecError, match=r"model.dense_layers: the script of \S+ has no argument for it"):
        job_of(load_run("qwen3-30b-a3b@26.06", "gb300", "bf16", 8, model=model))


@pytest.mark.parametrize(
    ("recipe", "tables", "message"),
    [
        (
            "deepseek-v3",
            {"model": {"mtp_depth": 0}},
            r"the layout has multi-token prediction \(m\), but model.mtp_depth is 0; expected a layout without m",
        ),
        (
            "deepseek-v3",
            {"model": {"mamba": {"state": 64}}},
            r"model.mamba.state: the recipe's model has no Mamba layers",
        ),
        (
            "kimi-k2",
            {"model": {"layer_pattern": "M" * 61}},
            r"model.layer_pattern: the recipe's model has no layer pattern; expected no such key",
        ),
    ],
)
def test_a_size_that_the_model_has_no_part_for_is_rejected(
    load_run: LoadRun, recipe: str, tables: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=message) as error:
        load_run(f"{recipe}@26.06", "gb200", "fp8", 256, **tables)
    assert len(error.value.faults) == 1


VARIANTS = [
    ("llama3.1-70b", "fp8", "v1", "cs-v1", 128),
    ("llama3.1-70b", "fp8", "v2", "cs-v2", 256),
    ("llama3.1-70b", "fp8", "mxfp8", "mxfp8-v2", 256),
    ("llama3.1-70b", "fp8", "mxfp8-v1", "mxfp8-v1", 128),
    ("llama3.1-70b", "nvfp4", "v1", "v1", 128),
    ("gpt-oss-120b", "bf16", "v1", "v1", 512),
    ("gpt-oss-120b", "bf16", None, "v2", 1280),
]


@pytest.mark.parametrize(("recipe", "dtype", "named", "variant", "batch"), VARIANTS)
def test_a_variant_may_be_named_by_a_part_of_its_name(
    load_run: LoadRun, recipe: str, dtype: str, named: str | None, variant: str, batch: int
) -> None:
    workload = {"variant": named} if named else {}
    run = load_run(f"{recipe}@26.06", "gb300", dtype, 64, workload=workload)
    command = job_of(run).phases[-1].command
    assert (run.variant, run.parallelism.global_batch_size) == (variant, batch)
    assert command[command.index("--config_variant") + 1] == variant[-2:]


def test_a_framework_option_selects_among_the_points_of_a_variant(load_run: LoadRun) -> None:
    tables = {"workload": {"variant": "v1"}, "framework": {"fp8_recipe": "mx"}}
    assert load_run("llama3.1-70b@26.06", "gb300", "fp8", 64, **tables).variant == "mxfp8-v1"
