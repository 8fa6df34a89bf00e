"""The job of a published point: command, environment, ranks and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb import Image, Job, Phase, Repository, Run, SpecError
from llmb_megatron_bridge.plugin import MegatronBridge

HERE = Path(__file__).parent
LoadRun = Callable[..., "Run[Any]"]
FIRST, FIXED = "megatron-bridge-f23d790cf6ff", "megatron-bridge-d7dfa7642caf"
NEXT, NEXT_FIXED = "megatron-bridge-15927667edd2", "megatron-bridge-4df8c97392bc"
NEWEST = "megatron-bridge-06f25c227ef9"
POINTS = [
    *[(f"llama3.1-{size}{release}", gpu, dtype, 1024 if (size, gpu) == ("405b", "h100") else 128)
      for size in ("8b", "70b", "405b") for gpu in ("gb300", "gb200", "b200", "h100") for dtype in ("fp8", "bf16")
      for release in ("@25.10", "@25.12")],
    *[(f"llama3.1-{size}@25.12", gpu, "nvfp4", 128) for size in ("8b", "70b", "405b") for gpu in ("gb300", "b200")],
]  # fmt: skip


def job_of(run: Run[Any]) -> Job:
    return MegatronBridge().build_job(run)


def train_of(run: Run[Any]) -> Phase:
    return job_of(run).phases[-1]


def errors_of(run: Run[Any]) -> dict[str | None, str]:
    with pytest.raises(SpecError) as raised:
        job_of(run)
    return {fault.key: str(fault) for fault in raised.value.faults}


def published_options(release: str) -> set[str]:
    lines = (HERE / "published" / f"options-{release}.txt").read_text().splitlines()
    return {word for line in lines if not line.startswith("#") for word in line.split()}


def split(phase: Phase) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options of the script with their values, and the overrides after them."""
    words = list(phase.command)
    words = words[next(place for place, word in enumerate(words) if word.endswith("run_script.py")) + 1 :]
    count = next(place for place, word in enumerate(words) if re.fullmatch(r"[a-z][\w.]+=.*", word))
    options, overrides = words[:count], [word.split("=", 1) for word in words[count:]]
    assert len({name for name, _ in overrides}) == len(overrides), "an override is given twice"
    return dict(zip(options[::2], options[1::2], strict=True)), dict(overrides)  # type: ignore[arg-type]  # pairs of two


def config_of(run: Run[Any]) -> dict[str, Any]:
    [text] = [text for path, text in job_of(run).files.items() if path.endswith(".yaml")]
    config: dict[str, Any] = json.loads(text)
    return config


# The command


@pytest.mark.parametrize(("recipe", "gpu_type", "dtype", "gpus"), POINTS)
def test_the_script_accepts_every_argument(
    load_run: LoadRun, recipe: str, gpu_type: str, dtype: str, gpus: int
) -> None:
    run = load_run(recipe, gpu_type, dtype, gpus)
    options, overrides = split(train_of(run))
    assert set(options) <= published_options(run.release[:5])
    assert options["--gpu"] == gpu_type
    assert options.get("-ng", options.get("--num_gpus")) == str(gpus)
    assert options["--global_batch_size"] == str(run.parallelism.global_batch_size)
    assert ("--max_steps" in options) != ("train.train_iters" in overrides)
    assert {options["-a"], options["-p"]} == {"dummy"}


@pytest.mark.parametrize(
    ("recipe", "gpu_type", "dtype", "gpus"),
    [("llama3.1-405b@25.10", "gb200", "fp8", 128), ("llama3.1-70b@25.10", "h100", "fp8", 64),
     ("llama3.1-8b@25.10", "b200", "bf16", 8),
     ("llama3.1-70b@25.12", "gb300", "nvfp4", 64)],
)  # fmt: skip
def test_the_command_equals_the_golden_text(
    load_run: LoadRun, golden_changes: Callable[[str, Path], str], recipe: str, gpu_type: str, dtype: str, gpus: int
) -> None:
    job = job_of(load_run(recipe, gpu_type, dtype, gpus))
    phase = job.phases[-1]
    env = [f"{name}={value}" for name, value in sorted({**job.env, **phase.env}.items())]
    file = HERE / "golden" / f"{recipe}-{gpu_type}-{dtype}-{gpus}.txt"
    changes = golden_changes("\n".join([*env, "", *phase.command, ""]), file)
    assert not changes, changes


def test_the_configuration_file_of_25_10_contains_the_settings_without_arguments(load_run: LoadRun) -> None:
    run = load_run("llama3.1-405b@25.10", "gb200", "fp8", 256)
    config = config_of(run)
    matrix = config["perf_matrix"]["gb200"]["num_gpus_256"]["common"]
    assert (matrix["use_megatron_fsdp"], matrix["cpu_offloading_num_layers"], matrix["cuda_graphs"]) == (
        True,
        80,
        False,
    )
    assert (matrix["tp"], matrix["vp"], matrix["gbs"], "recompute_num_layers" in matrix) == (2, None, 128, False)
    assert config["ConfigContainer"]["checkpoint"] == {"save": None}
    options, _ = split(train_of(run))
    assert options["--config_file"] == "/w/runs/RUN/llama31_405b_llm_pretrain.yaml"


@pytest.mark.parametrize(
    ("recipe", "gpu_type", "key", "value"),
    [("llama3.1-8b@25.10", "h100", "cuda_graphs", False), ("llama3.1-70b@25.10", "h100", "recompute_num_layers", None)],
)
def test_25_10_follows_the_code_if_table_and_code_differ(
    load_run: LoadRun, recipe: str, gpu_type: str, key: str, value: object
) -> None:
    [common] = [
        each["common"] for each in config_of(load_run(recipe, gpu_type, "fp8", 64))["perf_matrix"][gpu_type].values()
    ]
    assert common.get(key) == value


def test_fp8_means_current_scaling_and_mx_is_an_option(load_run: LoadRun) -> None:
    plain = load_run("llama3.1-70b@25.10", "gb200", "fp8", 64)
    mx = load_run("llama3.1-70b@25.10", "gb200", "fp8", 64, framework={"fp8_recipe": "mx"})
    assert split(train_of(plain))[0]["--fp8_recipe"] == "cs"
    options, _ = split(train_of(mx))
    assert (options["--fp8_recipe"], options["--tensor_parallel_size"], mx.parallelism.fsdp) == ("mx", "2", 1)
    assert (mx.variant, mx.differences, plain.variant) == ("mxfp8", (), "cs")
    named = load_run("llama3.1-70b@25.10", "gb200", "fp8", 64, workload={"variant": "mxfp8"})
    assert (named.parallelism, named.settings) == (mx.parallelism, mx.settings)
    later = load_run("llama3.1-405b@25.12", "gb300", "fp8", 128, framework={"fp8_recipe": "mx"})
    assert split(train_of(later))[0]["--compute_dtype"] == "fp8_mx"
    assert split(train_of(later))[0]["--virtual_pipeline_model_parallel_size"] == "4"


def test_overrides_of_the_spec_reach_the_command_and_the_file(load_run: LoadRun) -> None:
    chosen = {"tp": 4, "fsdp": 1, "cp": 2, "pp": 8, "vp": 8}
    run = load_run("llama3.1-405b@25.10", "gb200", "fp8", 256, parallelism=chosen,
                   framework={"config": {"optimizer.lr": 1e-4}}, workload={"steps": 60})  # fmt: skip
    options, overrides = split(train_of(run))
    assert (options["--tensor_parallel_size"], options["--virtual_pipeline_parallel_size"]) == ("4", "8")
    assert (overrides["optimizer.lr"], overrides["train.train_iters"]) == ("0.0001", "60")
    [common] = [each["common"] for each in config_of(run)["perf_matrix"]["gb200"].values()]
    assert common["use_megatron_fsdp"] is False


@pytest.mark.parametrize(("fsdp", "passed"), [(16, True), (1, False)])
def test_scripts_of_25_12_receive_an_argument_that_enables_fsdp(load_run: LoadRun, fsdp: int, passed: bool) -> None:
    run = load_run("llama3.1-8b@25.12", "h100", "fp8", 16, parallelism={"fsdp": fsdp})
    options, _ = split(train_of(run))
    assert (options.get("--use_megatron_fsdp") == "true") is passed
    assert set(options) <= published_options("25.12")


@pytest.mark.parametrize(("pp", "overridden"), [(1, True), (4, True), (None, False)])
def test_interleaving_is_overridden_if_the_spec_disables_it(
    load_run: LoadRun, pp: int | None, overridden: bool
) -> None:
    chosen = {"pp": pp, "vp": 1} if pp else {}
    options, overrides = split(train_of(load_run("llama3.1-70b@25.12", "gb200", "nvfp4", 64, parallelism=chosen)))
    assert (overrides.get("model.virtual_pipeline_model_parallel_size") == "null") == overridden
    assert ("--virtual_pipeline_model_parallel_size" in options) != overridden


def test_the_sizes_of_a_proxy_are_overrides(load_run: LoadRun) -> None:
    run = load_run("llama3.1-70b@25.10", "gb200", "fp8", 64, model={"layers": 8, "seq_len": 4096})
    _, overrides = split(train_of(run))
    assert (overrides["model.num_layers"], overrides["model.seq_length"]) == ("8", "4096")
    assert overrides["dataset.sequence_length"] == "4096"
    assert "model.num_layers" not in split(train_of(load_run("llama3.1-70b@25.10", "gb200", "fp8", 64)))[1]


# Placement and environment


@pytest.mark.parametrize(
    ("gpu_type", "gpus", "nodes", "per_node", "domain", "numa_gpus"),
    [("gb200", 64, 16, 4, 16, "2"), ("gb300", 128, 32, 4, 16, "2"), ("gb300", 1024, 256, 4, 16, "2"),
     ("gb200", 72, 18, 4, 18, "2"), ("h100", 64, 8, 8, None, "4"), ("b200", 128, 16, 8, None, "4")],
)  # fmt: skip
def test_nodes_tasks_and_nvlink_domains(
    load_run: LoadRun, gpu_type: str, gpus: int, nodes: int, per_node: int, domain: int | None, numa_gpus: str
) -> None:
    chosen = {"global_batch_size": 2 * gpus, "fsdp": gpus} if gpus == 72 else {}
    job = job_of(load_run("llama3.1-70b@25.10", gpu_type, "fp8", gpus, parallelism=chosen))
    assert (job.nodes, job.tasks_per_node, job.gpus_per_node, job.domain_nodes) == (nodes, per_node, per_node, domain)
    assert job.phases[-1].env["NUMA_GPUS"] == numa_gpus
    assert (job.phases[-1].ranks, job.phases[-1].measured, job.time_limit_s) == ("all", True, 1800)


@pytest.mark.parametrize(
    ("release", "folder"),
    [("@25.10.00", FIRST), ("@25.10", FIXED), ("@25.12.00", NEXT), ("@25.12", NEXT_FIXED), ("", NEWEST)],
)
def test_the_scripts_come_from_the_repository_at_its_commit(load_run: LoadRun, release: str, folder: str) -> None:
    run = load_run(f"llama3.1-8b{release}", "h100", "fp8", 8)
    environment, job = MegatronBridge().prepare_env(run), job_of(run)
    scripts = f"/w/cache/repositories/{folder}/scripts/performance"
    [fetched] = environment.repositories
    assert fetched.folder("/w/cache") == f"/w/cache/repositories/{folder}"
    assert isinstance(fetched, Repository)
    assert [(mount.source, mount.target, mount.read_only) for mount in job.mounts] == [(scripts, scripts, True)]
    assert f"{scripts}/run_script.py" in job.phases[-1].command
    assert job.phases[-1].env["SCRIPTS"] == scripts


def test_the_folder_of_the_scripts_cannot_be_set_in_env(load_run: LoadRun) -> None:
    run = load_run("llama3.1-8b@25.10", "h100", "fp8", 8, env={"SCRIPTS": "/mine", "NUMA_GPUS": "8"})
    assert set(errors_of(run)) == {"env.SCRIPTS"}


def test_image_token_and_cache_of_the_hub(load_run: LoadRun) -> None:
    first = load_run("llama3.1-8b@25.10", "h100", "fp8", 8)
    environment = MegatronBridge().prepare_env(first)
    assert (environment.base, environment.secrets) == (Image(ref="nvcr.io/nvidia/nemo:25.09.00"), ())
    assert (job_of(first).env["HF_HOME"], job_of(first).env["TRANSFORMERS_OFFLINE"]) == ("/w/cache/huggingface", "1")
    online = load_run("llama3.1-8b@25.12.01", "h100", "fp8", 8)
    assert MegatronBridge().prepare_env(online).secrets == ("HF_TOKEN",)
    assert job_of(online).env["TRANSFORMERS_OFFLINE"] == "0"
    without = load_run("llama3.1-8b@25.12.01", "h100", "fp8", 8, framework={"hf_token": False})
    assert MegatronBridge().prepare_env(without).secrets == ()
    assert job_of(without).env["TRANSFORMERS_OFFLINE"] == "1"


def test_vboost_is_a_phase_on_each_node_before_the_training(load_run: LoadRun) -> None:
    boost, train = job_of(load_run("llama3.1-8b@25.10", "h100", "fp8", 8, framework={"vboost": True})).phases
    assert boost.command == ("sudo", "nvidia-smi", "boost-slider", "--vboost", "1")
    assert (boost.ranks, boost.measured, boost.contained, train.name) == ("node", False, False, "train")


# Profiles


def nsys_words(phase: Phase) -> tuple[str, ...]:
    """Return the arguments of the nsys wrapper before the rank's command."""
    assert phase.command[:2] == ("bash", "/w/runs/RUN/nsys.sh")
    return phase.command[2 : phase.command.index("--")]


def test_a_capture_covers_steps_45_to_50_of_all_ranks(load_run: LoadRun) -> None:
    run = load_run("llama3.1-8b@25.10", "h100", "fp8", 16, profile={"tool": "nsys"})
    phase = train_of(run)
    _, overrides = split(phase)
    assert (overrides["profiling.profile_step_start"], overrides["profiling.profile_step_end"]) == ("45", "50")
    assert overrides["profiling.profile_ranks"] == f"[{','.join(map(str, range(16)))}]"
    report, ranks, metrics, *nsys = nsys_words(phase)
    assert (report, ranks, metrics) == ("/w/runs/RUN/nsys_profile/profile_RUN", ",".join(map(str, range(16))), "")
    assert (nsys[:4], nsys[-2:]) == (["nsys", "profile", "-t", "cuda"], ["-s", "none"])
    assert phase.outputs == tuple(f"{report}_{node}_{local}.nsys-rep" for node in (0, 1) for local in range(8))
    assert train_of(load_run("llama3.1-8b@25.10", "h100", "fp8", 16)).command[1] == "/w/runs/RUN/numa_rank_wrapper.sh"


def test_a_spec_selects_steps_ranks_and_metrics_of_a_capture(load_run: LoadRun) -> None:
    profile = {"tool": "nsys", "start_step": 20, "stop_step": 25, "ranks": [8, 0], "gpu_metrics": True, "cpu": True}
    phase = train_of(load_run("llama3.1-8b@25.12", "h100", "fp8", 16, profile=profile))
    _, overrides = split(phase)
    assert (overrides["profiling.profile_step_start"], overrides["profiling.profile_step_end"]) == ("20", "25")
    report, ranks, metrics, *nsys = nsys_words(phase)
    assert (ranks, metrics) == ("0,8", "--gpu-metrics-device=all")
    assert nsys[-3:] == ["-s", "process-tree", "--cpuctxsw=process-tree"]
    assert phase.outputs == (f"{report}_0_0.nsys-rep", f"{report}_1_0.nsys-rep")


# Errors


@pytest.mark.parametrize(
    ("recipe", "tables", "key", "words"),
    [
        ("llama3.1-8b@25.10", {"framework": {"fp8_recipe": "mx"}}, "framework.fp8_recipe",
         'no configuration for "mx" on h100 in fp8'),
        ("llama3.1-8b@25.10", {"parallelism": {"fsdp": 4}}, "parallelism.fsdp", "expected 1 or 16"),
        ("llama3.1-8b@25.10", {"parallelism": {"tp": 16}}, "parallelism.tp",
         "8 query groups are not divisible by tp = 16"),
        ("llama3.1-8b@25.12", {"parallelism": {"tp": 16}}, "parallelism.tp", "expected a divisor of 8"),
        ("llama3.1-8b@25.12", {"parallelism": {"tp": 8}, "model": {"seq_len": 8196}}, "model.seq_len",
         "sequence parallelism divides by tp = 8; expected a multiple of 8"),
        ("llama3.1-8b@25.10", {"parallelism": {"etp": 2}}, "parallelism.etp", "the model has no experts"),
        ("llama3.1-8b@25.10", {"framework": {"config": {"train.train_iters": 5}}}, "framework.config.train.train_iters",
         "workload.steps instead"),
        ("llama3.1-8b@25.10", {"framework": {"config": {"++model.num_layers": 5}}},
         "framework.config.++model.num_layers",
         "model.layers instead"),
        ("llama3.1-8b@25.10", {"framework": {"config": {"profiling.use_nsys_profiler": True}}},
         "framework.config.profiling.use_nsys_profiler", "[profile] instead"),
        ("llama3.1-8b@25.10", {"framework": {"config": {"optimzer.lr": 1e-4}}}, "framework.config.optimzer.lr",
         "did you mean 'optimizer'?"),
        ("llama3.1-8b@25.10", {"framework": {"config": {"optimizer": 1}}}, "framework.config.optimizer",
         "would replace a table; expected one of its keys, as optimizer.name"),
        ("llama3.1-8b@25.10", {"profile": {"tool": "nccl-trace"}}, "profile.tool", 'expected "nsys"'),
        ("llama3-tiny", {"profile": {"tool": "nsys"}}, "profile", "runs without a profiler"),
        ("llama3-tiny", {"parallelism": {"cp": 2}}, "parallelism.cp", "does not support it"),
    ],
)  # fmt: skip
def test_invalid_values_are_errors_with_their_keys(
    load_run: LoadRun, recipe: str, tables: dict[str, Any], key: str, words: str
) -> None:
    point = ("cpu", "fp32", 2) if "tiny" in recipe else ("h100", "fp8", 16)
    errors = errors_of(load_run(recipe, *point, **tables))
    assert words in errors[key]


def test_interleaved_stages_need_groups_of_micro_batches(load_run: LoadRun) -> None:
    batch = {"global_batch_size": 70}
    errors = errors_of(load_run("llama3.1-70b@25.12", "h100", "bf16", 64, parallelism=batch))
    assert errors == {
        "parallelism.global_batch_size": "parallelism.global_batch_size: gradient accumulation 35 is not divisible by "
        "pp = 4, as interleaved stages require; expected a multiple of 8, or vp = 1"
    }
    config = {"model.microbatch_group_size_per_vp_stage": 12}
    assert job_of(load_run("llama3.1-70b@25.12", "h100", "bf16", 64, parallelism=batch, framework={"config": config}))
    assert job_of(load_run("llama3.1-70b@25.12", "h100", "bf16", 64, parallelism=batch | {"vp": 1}))


def test_disabling_fsdp_is_an_error_if_the_script_sets_it(load_run: LoadRun) -> None:
    errors = errors_of(load_run("llama3.1-70b@25.12", "gb200", "fp8", 64, parallelism={"fsdp": 1}))
    assert "have no option to disable it" in errors["parallelism.fsdp"]


def test_all_errors_of_a_run_are_reported_in_one_pass(load_run: LoadRun) -> None:
    run = load_run("llama3.1-8b@25.10", "h100", "fp8", 16, framework={"fp8_recipe": "mx"}, parallelism={"fsdp": 4})
    assert set(errors_of(run)) == {"framework.fp8_recipe", "parallelism.fsdp"}


def test_the_job_does_not_depend_on_a_scheduler(load_run: LoadRun) -> None:
    job = job_of(load_run("llama3.1-405b@25.10", "gb200", "fp8", 128, profile={"tool": "nsys"}))
    assert "SLURM" not in repr(attrs.asdict(job))
