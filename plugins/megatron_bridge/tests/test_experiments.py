"""``llmb parse`` on a directory of experiments, as written by the published launcher."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from parts.forked import run_llmb

NAME = "pretrain_llama31_405b_fp8_cs_gpus128_tp2_pp1_cp1_vpNone_ep1_mbs1_gbs64_658572"
CUDA_ERROR = "CUDA error: an illegal memory access was encountered"
TIMES = [5741.47 + offset for offset in (-90, -70, -50, -30, -10, 10, 30, 50, 70, 90)]  # ms, of steps 35 to 44


def training(last: int = 50, grad_norm: str = "1.5") -> str:
    text = "[after dataloaders are built] datetime: 2025-12-19 10:40:00\n"
    for step in range(1, last + 1):
        time_ms = TIMES[step - 35] if 35 <= step <= 44 else 9000.0
        text += (
            f"Step Time : {time_ms / 1000:.2f}s GPU utilization: {9397.6e3 / time_ms:.1f}TFLOP/s/GPU\n"
            f" [2025-12-19 10:49:15] iteration {step:8d}/{50:8d} | consumed samples: {64 * step:12d} | elapsed time "
            f"per iteration (ms): {time_ms:.1f} | lm loss: 6.5E+00 | grad norm: {grad_norm} |\n"
        )
    return text


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Create a folder with experiments (complete, too short, with NaN, failed before a step) and other files."""
    logs = {
        f"log-me-account.{NAME}_0.out": training(),
        "log-me-account.pretrain_llama3_8b_fp8_cs_gpus8_1_0.out": training(last=40),
        "log-me-account.pretrain_llama3_8b_bf16_gpus8_2_0.out": training(grad_norm="nan"),
        "log-me-account.pretrain_llama3_70b_bf16_gpus64_3_0.out": "ImportError: no module named megatron\n",
    }
    other = {
        f"sbatch_me-account.{NAME}.out": training(),
        "log-me-account.import_ckpt_exp_4_0.out": training(),
        "log-me-account.nsys_analysis_5_0.out": "iteration, training, model\n",
        "vboost.out": "training\n",
        f"{NAME}.sbatch": "#SBATCH --nodes=32\n",
    }
    for name, text in {**logs, **other}.items():
        folder = tmp_path / "experiments" / NAME / f"{NAME}_1766" / NAME
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (tmp_path / "experiments" / NAME / "profile.nsys-rep").write_bytes(b"Step Time\0" * 1000)
    return tmp_path


def test_an_experiment_that_fine_tunes_has_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "log-me-account.lora_llama3_70b_fp8_cs_gpus8_tp2_0.out").write_text(training())
    [row] = csv.DictReader(io.StringIO(llmb(tmp_path, ".", "--csv").stdout))
    assert "lora_llama3_70b_fp8_cs_gpus8_tp2" in row.values()


def llmb(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_llmb(["parse", *arguments, "--framework", "megatron_bridge"], cwd=here)


def parsed(here: Path, *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(llmb(here, *arguments, "--json").stdout)
    return document


def test_the_table_is_the_published_one(here: Path) -> None:
    done = llmb(here)
    heading, *rows, counts = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert heading.split("  ")[0] == "Experiment"
    for column in ("Status", "Time Mean (ms)", "Time Std (ms)", "TFLOPS_per_GPU Mean", "TFLOPS_per_GPU Std"):
        assert column in heading
    rates = [round(9397.6e3 / time, 1) for time in TIMES]
    assert [" ".join(row.split()) for row in rows] == [
        f"{NAME} Success 5741.500 {stdev(TIMES):.3f} {fmean(rates):.2f} {stdev(rates):.2f}",
        "pretrain_llama3_70b_bf16_gpus64_3 Failed (no step) a process failed with ImportError",
        "pretrain_llama3_8b_bf16_gpus8_2 Failed (last step 50) the loss was NaN",
        "pretrain_llama3_8b_fp8_cs_gpus8_1 Failed (last step 40) 40 of 50 steps",
    ]
    assert counts == "1 succeeded, 3 failed; mean of steps 35 to 44"


def test_the_default_directory_is_experiments(here: Path, tmp_path: Path) -> None:
    assert llmb(here, "experiments").stdout == llmb(here).stdout
    elsewhere = here / "experiments"
    done = llmb(elsewhere)
    assert done.returncode == 2
    assert "no directory experiments here, where megatron_bridge writes its logs" in done.stderr


@pytest.mark.parametrize(
    ("options", "name"), [((), NAME), (("--full-names",), f"log-me-account.{NAME}_0.out")], ids=["short", "full"]
)
def test_names_are_short_or_full_in_every_output_format(here: Path, options: tuple[str, ...], name: str) -> None:
    assert name in llmb(here, *options).stdout.splitlines()[1].split()
    assert name in [log["experiment"] for log in parsed(here, *options)["logs"]]
    rows = list(csv.DictReader(io.StringIO(llmb(here, *options, "--csv").stdout)))
    assert name in [row["experiment"] for row in rows]


def test_json_output_contains_the_same_results(here: Path) -> None:
    document = parsed(here)
    assert document["summary"] == {"succeeded": 1, "failed": 3}
    assert [log["status"] for log in document["logs"]] == ["complete", "no_data", "nan", "incomplete"]
    complete = document["logs"][0]
    assert (complete["summary"]["window"], complete["summary"]["count"]) == ([35, 44], 10)
    assert complete["summary"]["step_time_s"] == pytest.approx(5.7415)
    assert len(complete["steps"]) == 50


@pytest.mark.parametrize("steps", [(), ("--steps", "40")])
def test_another_window_makes_a_shorter_run_a_result(here: Path, steps: tuple[str, ...]) -> None:
    counts = parsed(here, "--window", "35:40", *steps)["summary"]
    assert counts == {"succeeded": 2, "failed": 2}


@pytest.mark.parametrize(
    ("last", "end", "options", "row"),
    [
        (44, "", (), "Success 5741.500 "),
        (44, "", ("--steps", "60"), "Failed (last step 44) 44 of 60 steps"),
        (44, "", ("--window", "last"), "Failed (last step 44) 44 of 50 steps"),
        (43, "", (), "Failed (last step 43) 43 of 50 steps"),
        (46, f"RuntimeError: {CUDA_ERROR}\n", (), "Failed (last step 46) the program accessed GPU memory"),
    ],
)
def test_a_run_that_passed_the_window_has_a_result_unless_it_failed(
    tmp_path: Path, last: int, end: str, options: tuple[str, ...], row: str
) -> None:
    log = tmp_path / "experiments" / f"log-me.{NAME}_0.out"
    log.parent.mkdir()
    log.write_text(training(last) + end)
    [_, shown, _] = llmb(tmp_path, *options).stdout.splitlines()
    assert " ".join(shown.split()[1:]).startswith(row)
