"""Logs of NeMo whose training stopped on purpose: slow GPUs, or a signal."""

from __future__ import annotations

from pathlib import Path

import llmb

WARNING = (
    "[default0]:[NeMo W 2026-11-01 10:00:00 straggler_det_callback:106] STRAGGLER DETECTION WARNING: Some GPUs have "
    "worse relative performance. Affected ranks: {StragglerId(rank=5, node='gpu07'), "
    "StragglerId(rank=6, node='gpu07')}\n"
)
STOP = (
    "[default0]:[NeMo E 2026-11-01 10:00:00 straggler_det_callback:239] Detected stragglers. Terminating training...\n"
)
SIGNAL = "[default0]:[NeMo I 2026-11-01 10:00:00 preemption:87] Received signal 15, initiating graceful stop\n"


def steps(first: int, last: int) -> str:
    return "".join(
        f"[default0]:Training epoch 0, iteration {n}/19 | global_step: {n} | reduced_train_loss: 11.03 | "
        "train_step_timing in s: 7.6\n"
        for n in range(first, last + 1)
    )


def failure(tmp_path: Path, text: str) -> llmb.Failure | None:
    (log := tmp_path / "run.log").write_text(text)
    return llmb.parse(log, framework="nemo_launcher").failure


def test_the_slowest_rank_and_its_node_are_the_cause(tmp_path: Path) -> None:
    killed = "[default3]:W1101 10:00:05 api.py:890] Sending process 192323 closing signal SIGTERM\n"
    found = failure(tmp_path, steps(0, 15) + WARNING + STOP + killed + "RuntimeError: exit code 1\n")
    assert found
    assert (found.rank, found.host, found.origin) == (5, "gpu07", "infrastructure")
    assert found.cause == "the straggler detection found slow GPUs and stopped the training"


def test_a_warning_that_stops_nothing_is_no_cause(tmp_path: Path) -> None:
    assert failure(tmp_path, steps(0, 9) + WARNING + steps(10, 19)) is None
    found = failure(tmp_path, steps(0, 9) + WARNING + "torch.OutOfMemoryError: CUDA out of memory.\n")
    assert found
    assert found.cause == "the accelerator is out of memory"


def test_a_signal_is_the_cause_only_without_another_one(tmp_path: Path) -> None:
    found = failure(tmp_path, steps(0, 3) + SIGNAL)
    assert found
    assert found.cause == "unknown: the job received SIGTERM and stopped after a checkpoint"
    preempted = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-01T10:00:00 DUE TO PREEMPTION ***\n"
    found = failure(tmp_path, steps(0, 3) + SIGNAL + preempted)
    assert found
    assert found.cause == "the scheduler took the job's nodes for another one"
