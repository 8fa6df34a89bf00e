"""Recipes of declared frameworks: values that are valid in TOML, and impossible on the GPU that they name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb
from llmb.cli.app import execute

POINT = {"gpu_type": "h100", "dtype": "bf16", "gpus": [8, 16], "global_batch_size": "12 * gpus"}
BASELINE = {"gpu_type": "h100", "dtype": "bf16", "gpus": [8, 16]}
RECIPE: dict[str, Any] = {"steps": 20, "seq_len": 2048, "params": 7e9, "points": [POINT]}


def error_of(folder: Path, **keys: Any) -> str:
    """Return the error of a spec whose recipe has these keys, or "" if the spec is valid."""
    file = folder / "mylm.toml"
    recipe = {key: value for key, value in {**RECIPE, **keys}.items() if value is not None}
    tables = {"command": ["true"], "log": {"line": "iter {step}: {time_s} s"}, "recipe": recipe}
    file.write_text(tomli_w.dumps(tables))
    spec = {
        "workload": {"recipe": str(file), "gpu_type": "h100", "dtype": "bf16", "gpus": 8},
        "target": {"scheduler": "local", "workdir": str(folder)},
    }
    try:
        llmb.load(spec)
    except llmb.LlmbError as error:
        return str(error)
    return ""


def test_a_gpu_type_without_the_dtypes_of_its_own_points_is_not_offered(tmp_path: Path) -> None:
    error = error_of(tmp_path, points=[{**POINT, "dtype": "int8"}])
    assert "h100 supports none of the dtypes of mylm/mylm: int8; expected a GPU type with int8" in error


@pytest.mark.parametrize(
    ("column", "values", "message", "expected"),
    [
        ("step_time_s", [3280, 3100], "step_time_s: 3280 s", "expected seconds, not milliseconds"),
        ("step_time_s", [0.000911, 0.0008], "step_time_s: 0.000911 s", "expected seconds, not minutes or hours"),
        ("step_time_s", [1e-7, 3], "step_time_s: 1e-07 s is out of range", "expected 1e-06 to 1e+07 s"),
        ("tflops_per_gpu", [315e12, 310e12], "tflops_per_gpu: 3.15e+14 TFLOP/s is out of range", "1e+06 TFLOP/s"),
        (
            "tflops_per_gpu",
            [315e3, 310e3],
            "tflops_per_gpu: 315000 TFLOP/s",
            "expected TFLOP/s of one GPU, not GFLOP/s",
        ),
        ("tflops_per_gpu", [0.315, 0.31], "tflops_per_gpu: 0.315 TFLOP/s", "expected TFLOP/s, not PFLOP/s"),
        ("tokens_per_s_per_gpu", [7.49, 7.4], "7.49 tokens/s per GPU", "expected tokens/s, not thousands of tokens/s"),
    ],
)
def test_a_baseline_in_another_unit_is_an_error(
    tmp_path: Path, column: str, values: list[float], message: str, expected: str
) -> None:
    error = error_of(tmp_path, baselines=[{**BASELINE, column: values}])
    assert f"mylm.toml: recipe.baselines[0].{column}" in error
    assert message in error
    assert expected in error


@pytest.mark.parametrize(
    ("column", "values"),
    [("step_time_s", [3.28, 3.1]), ("tflops_per_gpu", [315, 310]), ("tokens_per_s_per_gpu", [7490, 7400])],
)
def test_a_baseline_in_the_unit_of_its_key_is_valid(tmp_path: Path, column: str, values: list[float]) -> None:
    assert error_of(tmp_path, baselines=[{**BASELINE, column: values}]) == ""


def test_a_small_model_may_be_far_from_the_peak(tmp_path: Path) -> None:
    assert error_of(tmp_path, params=5e4, baselines=[{**BASELINE, "step_time_s": [3, 3]}]) == ""


def test_metrics_of_logged_tflops_without_flops_are_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert error_of(tmp_path, params=None) == ""
    options = ("--gpu-type", "h100", "--dtype", "bf16", "--gpus", "8", "--tflops-per-gpu", "400")
    assert execute(["metrics", f"{tmp_path}/mylm.toml", *options]) == 0
    assert "the recipe does not state the FLOPs of the model" in capsys.readouterr().out
