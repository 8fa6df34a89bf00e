"""The result of a run: the nodes of its slow ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb.drive.finalize.write_result import EndedJob, write_result
from llmb.plugins.registry import PluginRegistry
from llmb.records.log_copies.copy_and_parse_logs import LogCopies
from llmb.records.record import RunRecord
from llmb.records.result import read_result
from llmb.spec.spec_of_run import build_run_toml
from llmb.testing import plan_tables
from llmb.values.job_history import Attempt, JobHistory
from llmb.values.job_status import JobStatus

NODES = tuple(f"n{number}" for number in range(8))


@pytest.mark.parametrize("ranks", ["all", "node"])
def test_a_slow_node_is_found_by_the_numbers_of_its_processes(tmp_path: Path, ranks: Any) -> None:
    workload = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}
    plan = plan_tables({"workload": workload})
    phases = tuple(attrs.evolve(phase, ranks=ranks) for phase in plan.job.phases)
    plan = attrs.evolve(plan, job=attrs.evolve(plan.job, phases=phases))
    record, registry = RunRecord(tmp_path / plan.run.id, build_run_toml(plan.spec, {}), {}), PluginRegistry()
    record.create("", "")
    processes = range(64 if ranks == "all" else 8)
    per_node = len(processes) // 8
    times_s = [7.6 if process // per_node == 5 else 7 + process % 7 / 1000 for process in processes]
    lines = [
        f"{process}: completed step: {step}, seconds: {times_s[process]:.3f}, TFLOP/s/device: 500.0, loss: 8.0\n"
        for step in range(40)
        for process in processes
    ]
    logs = LogCopies(plan, record, registry.framework("maxtext"), registry.scheduler("slurm"))
    measured = next(log for log in logs.files if log.phase == plan.job.phases[-1].name)
    logs.add(measured.path, "".join(lines).encode(), is_last=True)
    job = EndedJob(
        status=JobStatus(state="ended", cause="failed"),
        history=JobHistory(attempts=(Attempt(attempt=0, nodes=NODES),)),
        recorded=b"",
    )
    write_result(plan, record, logs, job, registry)
    found = read_result(record).rank_times
    assert found is not None
    assert [each.host for each in found.slow_hosts] == ["n5"]
