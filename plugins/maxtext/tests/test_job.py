"""The complete job of Llama 2 70B: profile, conversion and performance run, at every published point."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb import FrozenMap, Image, Job, Paths, Phase, Run, SpecError
from llmb_maxtext.plugin import MaxText

GOLDEN = Path(__file__).parent / "golden"
POINTS = [
    *[("h100", dtype, gpus) for dtype in ("bf16", "fp8") for gpus in (64, 128, 256, 512, 1024, 2048)],
    *[("a100", "bf16", gpus) for gpus in (64, 128, 256, 512, 1024, 2048)],
]
THRESHOLDS = ("all_reduce", "all_gather", "reduce_scatter")
LoadRun = Callable[..., "Run[Any]"]


def job_of(run: Run[Any]) -> Job:
    return MaxText().build_job(run)


def phases_of(run: Run[Any]) -> tuple[Phase, Phase, Phase]:
    profile, convert, performance = job_of(run).phases
    return profile, convert, performance


def arguments_of(phase: Phase) -> dict[str, str]:
    """Return the ``key=value`` arguments of MaxText."""
    words = phase.command[phase.command.index("/opt/maxtext/MaxText/configs/base.yml") + 1 :]
    pairs = [word.split("=", 1) for word in words]
    assert len(dict(pairs)) == len(pairs), "an argument is given twice"  # type: ignore[arg-type]  # pairs of two
    return dict(pairs)  # type: ignore[arg-type]  # as above


def flags_of(phase: Phase) -> dict[str, str]:
    words = [word.removeprefix("--").partition("=") for word in phase.env["XLA_FLAGS"].split(" ")]
    assert len({name for name, _, _ in words}) == len(words), "a flag is given twice"
    return {name: value for name, _, value in words}


def errors_of(run: Run[Any]) -> dict[str | None, str]:
    with pytest.raises(SpecError) as raised:
        job_of(run)
    return {fault.key: str(fault) for fault in raised.value.faults}


# Every published point


@pytest.mark.parametrize(("gpu_type", "dtype", "gpus"), POINTS)
def test_the_mesh_is_the_published_one(load_run: LoadRun, gpu_type: str, dtype: str, gpus: int) -> None:
    run = load_run(gpu_type, dtype, gpus)
    profile, _, performance = phases_of(run)
    nodes = gpus // 8

    for phase in (profile, performance):
        arguments = arguments_of(phase)
        mesh = {name: int(value) for name, value in arguments.items() if name.startswith(("ici_", "dcn_"))}
        assert mesh == {
            "ici_tensor_parallelism": 1,
            "ici_fsdp_parallelism": 8,
            "ici_data_parallelism": 1,
            "dcn_fsdp_parallelism": nodes if nodes < 64 else 16,
            "dcn_data_parallelism": 1 if nodes < 64 else nodes // 16,
        }
        assert arguments["per_device_batch_size"] == "2"
        assert "gradient_accumulation_steps" not in arguments
        assert "override_model_config" not in arguments


@pytest.mark.parametrize(("gpu_type", "dtype", "gpus"), POINTS)
def test_the_job_fills_whole_nodes(load_run: LoadRun, gpu_type: str, dtype: str, gpus: int) -> None:
    run = load_run(gpu_type, dtype, gpus)
    job = job_of(run)

    assert (job.nodes, job.tasks_per_node, job.gpus_per_node, job.time_limit_s) == (gpus // 8, 8, 8, 3600)
    assert MaxText().prepare_env(run).base == Image(ref="ghcr.io/nvidia/jax:maxtext-2024-12-09")
    assert job.env == {
        "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.94",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "NVTE_FUSED_ATTN": "1",
        "NCCL_IB_SL": "1",
    }


@pytest.mark.parametrize(("gpu_type", "dtype", "gpus"), POINTS)
def test_the_thresholds_are_eight_gib_divided_by_dtype_and_scale(
    load_run: LoadRun, gpu_type: str, dtype: str, gpus: int
) -> None:
    divisors = {"bf16": [4, 4, 256], "fp8": [8, 16, 1024]}[dtype]
    if gpus // 8 >= 64:
        divisors[2] *= 2
    profile, _, performance = phases_of(load_run(gpu_type, dtype, gpus))

    for phase in (profile, performance):
        found = [flags_of(phase)[f"xla_gpu_{kind}_combine_threshold_bytes"] for kind in THRESHOLDS]
        assert [int(value) for value in found] == [8 * 2**30 // divisor for divisor in divisors]


@pytest.mark.parametrize(("gpu_type", "dtype", "gpus"), POINTS)
def test_the_kept_activations_depend_on_the_dtype(load_run: LoadRun, gpu_type: str, dtype: str, gpus: int) -> None:
    arguments = arguments_of(phases_of(load_run(gpu_type, dtype, gpus))[2])
    kept = {name for name, value in arguments.items() if value == "device"}

    assert arguments["remat_policy"] == "custom"
    assert kept == {"query_proj", "value_proj", "key_proj", "qkv_proj", "out_proj"} | (
        {"mlpwo"} if dtype == "bf16" else set()
    )
    assert arguments["quantization"] == ("" if dtype == "bf16" else "fp8")


@pytest.mark.parametrize(
    ("gpu_type", "dtype", "gpus"), [("h100", "bf16", 64), ("h100", "fp8", 2048), ("a100", "bf16", 512)]
)
def test_the_complete_job_equals_the_golden_text(
    load_run: LoadRun, golden_changes: Callable[[str, Path], str], gpu_type: str, dtype: str, gpus: int
) -> None:
    run = load_run(gpu_type, dtype, gpus)
    changes = golden_changes(text_of(run, job_of(run)), GOLDEN / f"llama2-70b-{gpu_type}-{dtype}-{gpus}.txt")
    assert not changes, changes


def text_of(run: Run[Any], job: Job) -> str:
    """Return everything that a reviewer should see of a job, one item per line."""
    image = MaxText().prepare_env(run).base
    assert isinstance(image, Image)
    lines = [f"image {image.ref}", f"nodes {job.nodes} x {job.tasks_per_node} tasks, {job.gpus_per_node} GPUs each"]
    lines += [f"time limit {job.time_limit_s} s", *[f"env {name}={value}" for name, value in job.env.items()]]
    lines += [f"file {path}" for path in job.files]
    for phase in job.phases:
        lines += ["", f"phase {phase.name}: ranks {phase.ranks}, {'' if phase.measured else 'not '}measured"]
        for name, value in phase.env.items():
            lines += [f"env {name}"] + [f"    {word}" for word in value.split(" ")]
        lines += ["command", *[f"    {word}" for word in phase.command], *[f"output {path}" for path in phase.outputs]]
    return "\n".join(lines) + "\n"


# Three phases


def test_only_the_performance_run_is_measured_and_only_the_first_rank_converts(load_run: LoadRun) -> None:
    phases = phases_of(load_run("h100", "fp8", 128))

    assert [(phase.name, phase.ranks, phase.measured) for phase in phases] == [
        ("prof", "all", False),
        ("convert", "first", False),
        ("perf", "all", True),
    ]


def test_each_phase_reads_the_required_output_of_the_phase_before(load_run: LoadRun) -> None:
    profile, convert, performance = phases_of(load_run("h100", "fp8", 128))
    [report], [converted] = profile.outputs, convert.outputs

    assert report == "/w/runs/RUN/nsys/RUN-prof.nsys-rep"
    assert convert.command[convert.command.index("--profile_path") + 1] == report
    assert convert.command[convert.command.index("--pgle_output_path") + 1] == converted
    assert flags_of(performance)["xla_gpu_pgle_profile_file_or_directory_path"] == converted


def test_the_reports_of_both_training_phases_have_different_names(load_run: LoadRun) -> None:
    profile, _, performance = phases_of(load_run("h100", "bf16", 64))

    for phase, name in ((profile, "prof"), (performance, "perf")):
        assert phase.command[phase.command.index("-o") + 1] == f"/w/runs/RUN/nsys/RUN-{name}"
        assert phase.command[phase.command.index("--") + 1 :][:2] == ("nsys", "profile")
        assert arguments_of(phase)["run_name"] == f"RUN-{name}"


def test_only_the_performance_run_is_compiled_with_latency_hiding(load_run: LoadRun) -> None:
    profile, _, performance = phases_of(load_run("h100", "bf16", 64))
    only = flags_of(profile).keys() ^ flags_of(performance).keys()

    assert flags_of(profile)["xla_gpu_enable_latency_hiding_scheduler"] == "false"
    assert flags_of(performance)["xla_gpu_enable_latency_hiding_scheduler"] == "true"
    assert flags_of(profile)["xla_gpu_disable_async_collectives"] == "allreduce,allgather,reducescatter"
    assert only == {"xla_gpu_disable_async_collectives", "xla_gpu_pgle_profile_file_or_directory_path"}
    assert flags_of(profile)["xla_dump_to"] != flags_of(performance)["xla_dump_to"]
    assert (arguments_of(profile)["steps"], arguments_of(performance)["steps"]) == ("15", "50")


# Values that a spec may change


def test_steps_change_only_the_performance_run(load_run: LoadRun) -> None:
    profile, _, performance = phases_of(load_run("h100", "bf16", 64, "workload.steps=100"))

    assert (arguments_of(profile)["steps"], arguments_of(performance)["steps"]) == ("15", "100")


def test_fewer_steps_than_the_profiler_skips_are_an_error(load_run: LoadRun) -> None:
    errors = errors_of(load_run("h100", "bf16", 64, "workload.steps=9"))

    assert errors == {
        "workload.steps": "workload.steps: 9 steps are too few, because MaxText's profiler starts at step 9; "
        "expected at least 10"
    }
    assert job_of(load_run("h100", "bf16", 64, "workload.steps=10"))


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"profiler": ""}, 'profiler: the compiler uses the nsys report of the profile run; expected "nsys"'),
        (
            {"skip_first_n_steps_for_profiler": 15},
            "skip_first_n_steps_for_profiler: MaxText's profiler would start at step 15, but the profile run has 15 "
            "steps; expected at most 14",
        ),
    ],
)
def test_the_profile_run_must_write_a_report(load_run: LoadRun, config: dict[str, Any], error: str) -> None:
    errors = errors_of(load_run("h100", "bf16", 64, framework={"config": config}))
    assert [*errors.values()] == [f"framework.config.{error}"]


def test_a_recipe_without_a_profile_run_may_use_any_profiler(load_run_of: LoadRun) -> None:
    config = {"profiler": "xplane", "skip_first_n_steps_for_profiler": 1}
    assert job_of(load_run_of("maxtext/llama2-tiny", "cpu", "fp32", 1, framework={"config": config}))


def test_arguments_of_the_spec_override_the_recipe_in_both_training_phases(load_run: LoadRun) -> None:
    changed = {"remat_policy": "full", "scan_layers": False, "base_output_directory": "/elsewhere", "ratio": 0.5}
    profile, _, performance = phases_of(load_run("h100", "bf16", 64, framework={"config": changed}))

    for phase in (profile, performance):
        arguments = arguments_of(phase)
        assert [arguments[name] for name in changed] == ["full", "false", "/elsewhere", "0.5"]


@pytest.mark.parametrize(
    "name",
    [
        *("steps", "run_name", "per_device_batch_size", "max_target_length", "dcn_data_parallelism"),
        *("ici_context_parallelism", "base_num_decoder_layers", "vocab_size", "model_name"),
    ],
)
def test_arguments_that_determine_the_metrics_cannot_be_set_in_config(load_run: LoadRun, name: str) -> None:
    errors = errors_of(load_run("h100", "bf16", 64, framework={"config": {name: 1}}))

    assert list(errors) == [f"framework.config.{name}"]


def test_a_changed_model_is_passed_as_its_sizes(load_run: LoadRun) -> None:
    run = load_run("h100", "bf16", 64, model={"layers": 40, "seq_len": 2048})
    arguments = arguments_of(phases_of(run)[2])

    assert arguments["override_model_config"] == "true"
    assert (arguments["base_num_decoder_layers"], arguments["base_emb_dim"]) == ("40", "8192")
    assert (arguments["max_target_length"], arguments["head_dim"]) == ("2048", "128")


def test_a_recipe_may_state_the_size_of_a_head(load_run_of: LoadRun) -> None:
    run = load_run_of("maxtext/llama2-tiny", "cpu", "fp32", 1)
    assert "head_dim=64" in job_of(run).phases[0].command
    run = attrs.evolve(run, architecture=attrs.evolve(run.model, head_size=32))
    assert "head_dim=32" in job_of(run).phases[0].command


def test_the_size_of_a_head_can_be_changed(load_run: LoadRun) -> None:
    run = load_run("h100", "bf16", 64, model={"head_size": 64})
    assert arguments_of(phases_of(run)[2])["head_dim"] == "64"
    assert run.proxy
    same = load_run("h100", "bf16", 64, model={"head_size": 128})  # hidden / heads
    assert (same.model, same.overrides, same.proxy) == (run.published_model, (), False)


def test_a_changed_model_is_kept_at_an_unpublished_number_of_gpus(load_run: LoadRun) -> None:
    run = load_run("h100", "bf16", 32, model={"layers": 40}, parallelism={"global_batch_size": 64, "fsdp": 32})

    assert arguments_of(phases_of(run)[2])["base_num_decoder_layers"] == "40"


def test_tensor_parallelism_stays_inside_a_node(load_run: LoadRun) -> None:
    run = load_run("h100", "bf16", 64, parallelism={"tp": 2, "fsdp": 32})
    arguments = arguments_of(phases_of(run)[2])

    mesh = [int(value) for name, value in arguments.items() if name.startswith(("ici_", "dcn_"))]
    assert mesh == [2, 4, 1, 8, 1]
    # dp is 32: 128 samples are 2 passes with 2 samples per replica, so 1 per GPU
    assert (arguments["per_device_batch_size"], arguments["gradient_accumulation_steps"]) == ("1", "2")


@pytest.mark.parametrize(("tp", "fsdp", "key"), [(2, 64, "fsdp"), (16, 4, "tp"), (8, 16, "fsdp")])
def test_a_mesh_that_does_not_fit_is_an_error(load_run: LoadRun, tp: int, fsdp: int, key: str) -> None:
    assert list(errors_of(load_run("h100", "bf16", 64, parallelism={"tp": tp, "fsdp": fsdp}))) == [f"parallelism.{key}"]


@pytest.mark.parametrize("gpus_per_node", [4, 8])
@pytest.mark.parametrize(
    ("gpus", "tp", "fsdp"), [(96, 1, 12), (96, 2, 24), (64, 4, 2), (24, 1, 3), (8, 1, 8), (24, 4, 6)]
)
def test_a_mesh_always_contains_all_gpus(load_run: LoadRun, gpus: int, tp: int, fsdp: int, gpus_per_node: int) -> None:
    parallelism = {"tp": tp, "fsdp": fsdp, "global_batch_size": 2 * gpus}
    target = {"scheduler": "many_nodes", "gpus_per_node": gpus_per_node}
    arguments = arguments_of(phases_of(load_run("h100", "bf16", gpus, parallelism=parallelism, target=target))[2])
    product = {"ici": 1, "dcn": 1}
    for name, value in arguments.items():
        if name.startswith(("ici_", "dcn_")):
            product[name[:3]] *= int(value)

    assert product == {"ici": gpus_per_node, "dcn": gpus // gpus_per_node}


def test_a_larger_batch_is_accumulated(load_run: LoadRun) -> None:
    arguments = arguments_of(phases_of(load_run("h100", "bf16", 64, parallelism={"global_batch_size": 512}))[2])

    assert (arguments["per_device_batch_size"], arguments["gradient_accumulation_steps"]) == ("2", "4")


# Errors


def test_a_profile_table_is_an_error_with_the_reason(load_run: LoadRun) -> None:
    errors = errors_of(load_run("h100", "bf16", 64, profile={"tool": "nsys"}))

    assert list(errors) == ["profile"]
    assert "the compiler uses the first report" in errors["profile"]


def test_xla_flags_in_env_are_an_error_if_each_phase_has_its_own(load_run: LoadRun) -> None:
    errors = errors_of(load_run("h100", "bf16", 64, env={"XLA_FLAGS": "--mine", "NCCL_IB_SL": "0"}))
    assert list(errors) == ["env.XLA_FLAGS"]
    assert "without latency hiding" in errors["env.XLA_FLAGS"]


def test_xla_flags_in_env_are_allowed_if_the_recipe_sets_none(load_run_of: LoadRun) -> None:
    run = load_run_of("maxtext/llama2-tiny", "cpu", "fp32", 1, env={"XLA_FLAGS": "--mine"})
    assert job_of(run).phases[0].env == {}


@pytest.mark.parametrize("degree", ["pp", "cp"])
def test_degrees_that_the_recipe_does_not_support_are_errors(load_run: LoadRun, degree: str) -> None:
    assert list(errors_of(load_run("h100", "bf16", 64, parallelism={degree: 2}))) == [f"parallelism.{degree}"]


def test_fp8_on_a100_is_an_error_of_the_spec(load_run: LoadRun) -> None:
    with pytest.raises(SpecError) as raised:
        load_run("a100", "fp8", 64)

    assert [fault.key for fault in raised.value.faults] == ["workload.dtype"]


# The wrapper, executed

STAND_INS = {
    "nsys": """#!{python}
import subprocess, sys
words = sys.argv[1:]
out = words[words.index("-o") + 1]
status = subprocess.call(words[words.index("-o") + 2:])
open(out + ".nsys-rep", "w").write("report")
sys.exit(status)
""",
    "python3": """#!{python}
import os, re, sys
words = sys.argv[1:]
if "--pgle_output_path" in words:
    report = open(words[words.index("--profile_path") + 1]).read()
    open(words[words.index("--pgle_output_path") + 1], "w").write("costs from the " + report)
files = r"--(xla_dump_to|xla_gpu_pgle_profile_file_or_directory_path)=(\\S+)"
for name, path in re.findall(files, os.environ["XLA_FLAGS"]):
    print(name, os.path.exists(path))
print("arguments", *[word for word in words if word.startswith(("steps=", "run_name="))])
""",
}


def run_phase(phase: Phase, bin_folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run one rank of a phase with the stand-ins first on PATH."""
    ranks = {"LLMB_WORLD_SIZE": "1", "XLA_FLAGS": "", **phase.env, **env}
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        phase.command, env={**os.environ, **ranks, "PATH": path}, capture_output=True, text=True, check=True
    )


def test_the_phases_find_their_folders_and_pass_on_their_files(load_run: LoadRun, tmp_path: Path) -> None:
    bin_folder, folder = tmp_path / "bin", tmp_path / "run"
    bin_folder.mkdir()
    folder.mkdir()
    for name, text in STAND_INS.items():
        (bin_folder / name).write_text(text.replace("{python}", sys.executable))
        (bin_folder / name).chmod(0o755)
    job = job_of(attrs.evolve(load_run("h100", "bf16", 64), paths=Paths(run=str(folder), cache="")))
    for path, text in job.files.items():
        Path(path).write_text(text)
    profile, convert, performance = (run_phase(phase, bin_folder).stdout.splitlines() for phase in job.phases)

    assert profile == ["xla_dump_to True", "arguments run_name=RUN-prof steps=15"]
    assert convert == ["arguments"]
    assert performance == [
        "xla_gpu_pgle_profile_file_or_directory_path True",
        "xla_dump_to True",
        "arguments run_name=RUN-perf steps=50",
    ]
    assert {path.name for path in folder.rglob("*.nsys-rep")} == {"RUN-prof.nsys-rep", "RUN-perf.nsys-rep"}
    assert (folder / "pgle" / "RUN.pbtxt").read_text() == "costs from the report"
    assert all(Path(path).stat().st_size for phase in job.phases for path in phase.outputs)


def environment_after(world: int, rank: int, **env: str) -> dict[str, str]:
    """Return the environment that the wrapper passes to its command."""
    script = resources.files("llmb_maxtext").joinpath("jax_rank_wrapper.sh").read_text()
    ranks = {
        "LLMB_WORLD_SIZE": str(world),
        "LLMB_RANK": str(rank),
        "LLMB_LOCAL_RANK": str(rank % 8),
        "LLMB_MASTER_ADDR": "node-1",
        "LLMB_MASTER_PORT": "29500",
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        ["bash", "-c", script, "jax_rank_wrapper.sh", "--", "env"],
        env={**ranks, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def test_the_wrapper_exports_the_rank_in_the_variables_of_open_mpi() -> None:
    env = environment_after(64, 13)

    assert env["JAX_COORDINATOR_ADDRESS"] == "node-1:29500"
    assert (env["OMPI_COMM_WORLD_SIZE"], env["OMPI_COMM_WORLD_RANK"], env["OMPI_COMM_WORLD_LOCAL_RANK"]) == (
        "64",
        "13",
        "5",
    )
    assert env["OMPI_MCA_orte_hnp_uri"]


def test_the_wrapper_exports_no_rank_for_a_single_process() -> None:
    assert not [name for name in environment_after(1, 0) if name.startswith(("JAX_", "OMPI_"))]


def test_a_run_without_a_profile_is_one_phase(load_run: LoadRun) -> None:
    run = load_run("h100", "bf16", 64)
    plain = {name: value for name, value in run.settings.items() if name not in ("profile", "nsys", "xla_flags")}
    [phase] = job_of(attrs.evolve(run, settings=FrozenMap(plain))).phases

    assert (phase.name, phase.measured, phase.outputs, phase.env) == ("train", True, (), {})
    assert phase.command[1:4] == ("/w/runs/RUN/jax_rank_wrapper.sh", "--", "python3")
