"""The result of a run: the nodes of its slow ranks, and the cause of a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb.drive.finalize.write_result import EndedJob, write_result
from llmb.plan_runs import RunPlan
from llmb.plugins.registry import PluginRegistry
from llmb.records.log_copies.copy_and_parse_logs import LogCopies
from llmb.records.record import RunRecord
from llmb.records.result import RunResult, read_result
from llmb.spec.spec_of_run import build_run_toml
from llmb.testing import plan_tables
from llmb.values.causes import Cause
from llmb.values.failure import Failure
from llmb.values.job_history import Attempt, JobHistory
from llmb.values.job_status import JobStatus

NODES = tuple(f"n{number}" for number in range(8))


WORKLOAD = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}


def write(folder: Path, plan: RunPlan, text: str, cause: Cause) -> RunResult:
    """Write the result of a run with this log, which the scheduler ended for this cause."""
    record, registry = RunRecord(folder / plan.run.id, build_run_toml(plan.spec, {}), {}), PluginRegistry()
    record.create("", "")
    logs = LogCopies(plan, record, registry.framework("maxtext"), registry.scheduler("slurm"))
    measured = next(log for log in logs.files if log.phase == plan.job.phases[-1].name)
    logs.add(measured.path, text.encode(), is_last=True)
    job = EndedJob(
        status=JobStatus(state="ended", cause=cause),
        history=JobHistory(attempts=(Attempt(attempt=0, nodes=NODES),)),
        recorded=b"",
    )
    write_result(plan, record, logs, job, registry)
    return read_result(record)


def failure_of(folder: Path, cause: Cause, text: str) -> Failure:
    found = write(folder, plan_tables({"workload": WORKLOAD}), text, cause).failure
    assert found
    return found


@pytest.mark.parametrize("ranks", ["all", "node"])
def test_a_slow_node_is_found_by_the_numbers_of_its_processes(tmp_path: Path, ranks: Any) -> None:
    plan = plan_tables({"workload": WORKLOAD})
    phases = tuple(attrs.evolve(phase, ranks=ranks) for phase in plan.job.phases)
    plan = attrs.evolve(plan, job=attrs.evolve(plan.job, phases=phases))
    processes = range(64 if ranks == "all" else 8)
    per_node = len(processes) // 8
    times_s = [7.6 if process // per_node == 5 else 7 + process % 7 / 1000 for process in processes]
    lines = [
        f"{process}: completed step: {step}, seconds: {times_s[process]:.3f}, TFLOP/s/device: 500.0, loss: 8.0\n"
        for step in range(40)
        for process in processes
    ]
    found = write(tmp_path, plan, "".join(lines), "failed").rank_times
    assert found is not None
    assert [each.host for each in found.slow_hosts] == ["n5"]


NODE_FAILED = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-22T12:00:00 DUE TO NODE n7 FAILURE ***"
LOST = (
    "3: E1122 12:00:00.0 12 coordination_service_agent.cc:1] Polled an error from coordination service",
    "3: n1:7:8 [2] NCCL WARN NET/IB : Got completion from peer 10.0.0.1<4444> with status=12 opcode=0 len=0",
    "3: Fatal Python error: Segmentation fault",
    "srun: error: n2: task 9: Killed",
    "srun: error: n2: task 9: Exited with exit code 1",
)
OUT_OF_MEMORY = "3: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 35433480192 bytes."


@pytest.mark.parametrize("cause", ["node failure", "preempted", "deadline"])
@pytest.mark.parametrize("text", LOST)
def test_what_processes_print_as_the_scheduler_ends_them_is_not_the_cause(
    tmp_path: Path, cause: Cause, text: str
) -> None:
    failure = failure_of(tmp_path / "alone", cause, f"{text}\n{NODE_FAILED}\n{text}\n")
    assert failure.cause.startswith(cause)
    assert failure.origin == ("user" if cause == "deadline" else "infrastructure")

    failure = failure_of(tmp_path / "with_error", cause, f"{text}\n{OUT_OF_MEMORY}\n{NODE_FAILED}\n")
    assert (failure.cause, failure.rank) == ("the accelerator is out of memory", 3)


TIME_LIMIT = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-22T12:00:00 DUE TO TIME LIMIT ***"


@pytest.mark.parametrize("text", LOST)
def test_what_processes_print_after_the_time_limit_is_not_the_cause_of_a_hang(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb.drive.finalize.write_result.find_last_pause_s", lambda *_: 1800.0)
    failure = failure_of(tmp_path / "after", "timeout", f"{TIME_LIMIT}\n{text}\n")
    assert failure.cause == "hit the time limit after 0 of 50 steps; it printed no step in its last 30 min"
    assert failure.remedy.startswith("the training may hang")

    failure = failure_of(tmp_path / "before", "timeout", f"{OUT_OF_MEMORY}\n{TIME_LIMIT}\n{text}\n")
    assert (failure.cause, failure.rank) == ("the accelerator is out of memory", 3)
