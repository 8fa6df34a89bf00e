"""Captures with nsys, and traces of NCCL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb import Job, Phase, Run, SpecError
from llmb_nemo_launcher.plugin import NeMoLauncher

from .compose_config import composed

LoadRun = Callable[..., "Run[Any]"]
NSYS = {"tool": "nsys"}
REPORT = "/w/runs/RUN/nsys/llama3.1-70b-fp8_64g_RUN"


def job_of(run: Run[Any]) -> Job:
    return NeMoLauncher().build_job(run)


def phase_of(run: Run[Any]) -> Phase:
    [phase] = job_of(run).phases
    return phase


def nsys_words(phase: Phase) -> tuple[str, ...]:
    """Return the arguments of the nsys wrapper before the command."""
    words = phase.command[phase.command.index("/w/runs/RUN/nsys.sh") + 1 :]
    return words[: words.index("--")]


def test_by_default_the_first_sixteen_ranks_are_captured_from_step_20_to_30(load_run: LoadRun, tmp_path: Path) -> None:
    run = load_run("llama3.1-70b", "fp8", 64, profile=NSYS)
    capture = composed(job_of(run), tmp_path)["model"]["nsys_profile"]
    prefix, ranks, metrics, *options = nsys_words(phase_of(run))

    assert {key: capture[key] for key in ("enabled", "start_step", "end_step", "ranks")} == {
        "enabled": True,
        "start_step": 20,
        "end_step": 30,
        "ranks": list(range(16)),
    }
    assert (prefix, ranks, metrics) == (REPORT, ",".join(map(str, range(16))), "")
    assert options[-4:] == ["--sample", "none", "--cpuctxsw", "none"]
    assert "--capture-range=cudaProfilerApi" in options
    assert phase_of(run).outputs == tuple(f"{REPORT}_{node}_{gpu}.nsys-rep" for node in (0, 1) for gpu in range(8))


@pytest.mark.parametrize(
    ("recipe", "dtype", "gpus", "ranks"),
    [  # PROFILE_RANKS in the publisher's {llama3.1,grok1,nemotron}/configure.sh, v24.11.1
        ("llama3.1-8b", "bf16", 8, 8),
        ("llama3.1-8b", "fp8", 64, 8),
        ("llama3.1-405b", "fp8", 576, 16),
        ("grok1-314b", "fp8", 512, 8),
        ("nemotron4-340b", "fp8", 256, 8),
    ],
)
def test_the_published_number_of_ranks_is_captured(
    load_run: LoadRun, recipe: str, dtype: str, gpus: int, ranks: int
) -> None:
    assert len(phase_of(load_run(recipe, dtype, gpus, profile=NSYS)).outputs) == ranks


def test_a_spec_selects_steps_ranks_metrics_and_cpu(load_run: LoadRun, tmp_path: Path) -> None:
    profile = {**NSYS, "start_step": 5, "stop_step": 9, "ranks": [0, 13], "gpu_metrics": True, "cpu": True}
    run = load_run("llama3.1-70b", "fp8", 64, profile=profile)
    capture = composed(job_of(run), tmp_path)["model"]["nsys_profile"]
    prefix, ranks, metrics, *options = nsys_words(phase_of(run))

    assert (capture["start_step"], capture["end_step"], capture["ranks"]) == (5, 9, [0, 13])
    assert (prefix, ranks, metrics) == (REPORT, "0,13", "--gpu-metrics-device=all")
    assert "--sample=process-tree" in options
    assert "none" not in options
    assert phase_of(run).outputs == (f"{REPORT}_0_0.nsys-rep", f"{REPORT}_1_5.nsys-rep")


def test_a_recorded_run_with_the_older_name_of_the_trace_has_the_same_job(load_run: LoadRun) -> None:
    run = load_run("llama3.1-70b", "fp8", 64, profile={"tool": "nccl-trace"})
    settings = {name.replace("nccl_trace", "nccl-trace"): value for name, value in run.settings.items()}

    assert job_of(attrs.evolve(run, settings=settings)).phases == job_of(run).phases


def test_a_trace_of_nccl_has_ten_steps_and_its_own_files(load_run: LoadRun, tmp_path: Path) -> None:
    run = load_run("llama3.1-70b", "fp8", 64, profile={"tool": "nccl-trace"})
    config, phase = composed(job_of(run), tmp_path), phase_of(run)

    assert (config["trainer"]["max_steps"], config["model"]["nsys_profile"]["enabled"]) == (10, False)
    assert phase.env == {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "COLL,P2P,NET",
        "NCCL_DEBUG_FILE": "/w/runs/RUN/nccl-trace/%h.%p.log",
    }
    assert "/w/runs/RUN/nccl-trace" in phase.command[: phase.command.index("--")]
    assert "nsys" not in " ".join(phase.command[: phase.command.index("python3")])


def test_only_the_subsystems_of_a_trace_can_be_chosen(load_run: LoadRun) -> None:
    env = {"NCCL_DEBUG": "WARN", "NCCL_DEBUG_SUBSYS": "ALL", "NCCL_DEBUG_FILE": "/tmp/trace"}
    with pytest.raises(SpecError) as refused:
        job_of(load_run("llama3.1-70b", "fp8", 64, profile={"tool": "nccl-trace"}, env=env))
    assert [fault.key for fault in refused.value.faults] == ["env.NCCL_DEBUG", "env.NCCL_DEBUG_FILE"]
    assert job_of(load_run("llama3.1-70b", "fp8", 64, env=env))


def test_without_a_capture_the_job_has_no_nsys_wrapper_and_no_outputs(load_run: LoadRun) -> None:
    job = job_of(load_run("llama3.1-70b", "fp8", 64))
    [phase] = job.phases

    assert (phase.env, phase.outputs) == ({}, ())
    assert set(job.files) == {"/w/runs/RUN/cfg/llama3.1_70b.yaml", "/w/runs/RUN/nemo_rank_wrapper.sh"}


def test_a_run_that_ends_before_the_capture_is_an_error(load_run: LoadRun) -> None:
    with pytest.raises(SpecError, match="steps 20 to 30 are not a range within the run's 25 steps"):
        load_run("llama3.1-70b", "fp8", 64, "workload.steps=25", profile=NSYS)
