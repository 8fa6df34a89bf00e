from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb


@pytest.fixture
def spec(tmp_path: Path) -> Any:
    def write(**tables: dict[str, Any]) -> Path:
        usual: dict[str, dict[str, Any]] = {
            "workload": {"recipe": "torchtitan/llama3.1-8b", "gpu_type": "h100", "dtype": "bf16", "gpus": 8},
            "target": {"scheduler": "local", "runtime": "none", "workdir": "/work"},
        }
        names = dict.fromkeys((*usual, *tables))
        file = tmp_path / "spec.toml"
        file.write_text(tomli_w.dumps({name: usual.get(name, {}) | tables.get(name, {}) for name in names}))
        return file

    return write


def planned(spec: Path) -> llmb.RunPlan:
    [run] = llmb.plan(llmb.load(spec), registry=llmb.PluginRegistry())
    return run


def config_of(run: llmb.RunPlan) -> dict[str, Any]:
    [text] = run.job.files.values()
    return tomllib.loads(text)


def test_the_job_is_one_task_per_gpu_with_the_recipe_s_configuration(spec: Any) -> None:
    run = planned(spec())
    [phase] = run.job.phases
    [file] = run.job.files
    assert (run.job.nodes, run.job.tasks_per_node, run.job.gpus_per_node) == (1, 8, 8)
    assert phase.command == ("python", "-m", "torchtitan.train", "--job.config_file", file)
    assert file.startswith("/work/runs/")
    assert run.job.env["PYTHONPATH"] == "/work/cache/repositories/torchtitan-73a0e6979dd1"
    assert [task.task.kind for task in run.tasks] == ["repository"]
    config = config_of(run)
    assert config["training"] == {
        "dataset_path": "/work/cache/repositories/torchtitan-73a0e6979dd1/tests/assets/c4_test",
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
        "data_parallel_shard_degree": 8,
        "data_parallel_replicate_degree": 1,
    }
    assert "converters" not in config["model"]


def test_with_fp8_the_linear_layers_are_converted(spec: Any) -> None:
    config = config_of(planned(spec(workload={"dtype": "fp8"})))
    assert config["model"]["converters"] == ["quantize.linear.float8"]
    assert config["quantize"]["linear"]["float8"]["enable_fsdp_float8_all_gather"] is True


def test_parameters_are_sharded_and_the_remaining_gpus_are_replicas(spec: Any) -> None:
    degrees = {"fsdp": 2, "tp": 2, "micro_batch_size": 1, "global_batch_size": 4}
    parallelism = config_of(planned(spec(parallelism=degrees)))["parallelism"]
    assert list(parallelism.values()) == [2, 1, 2, 2]


def test_options_of_the_spec_override_the_recipe(spec: Any) -> None:
    options = {"config": {"compile": {"enable": False}, "comm": {"init_timeout_seconds": 900}}, "checkout": "/titan"}
    run = planned(spec(framework=options))
    assert config_of(run)["compile"] == {"enable": False, "components": ["model", "loss"]}
    assert config_of(run)["comm"] == {"init_timeout_seconds": 900}
    assert (run.job.env["PYTHONPATH"], run.tasks) == ("/titan", ())


@pytest.mark.parametrize(
    ("tables", "key", "expected"),
    [
        ({"parallelism": {"pp": 2, "global_batch_size": 16}}, "parallelism.pp", "1"),
        ({"parallelism": {"tp": 2, "fsdp": 8}}, "parallelism.fsdp", "a divisor of 4"),
        ({"model": {"layers": 16}}, "model.layers", "32"),
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
         "framework.config.parallelism.tensor_parallel_degree", "[parallelism] instead"),
        ({"profile": {"tool": "nsys"}}, "profile", "[framework.config.profiling] instead"),
    ],
)  # fmt: skip
def test_unsupported_values_are_errors_with_their_keys(
    spec: Any, tables: dict[str, Any], key: str, expected: str
) -> None:
    with pytest.raises(llmb.SpecError) as raised:
        planned(spec(**tables))
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
