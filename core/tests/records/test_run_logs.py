"""Steps of a run from the copies of its logs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from llmb.logs.lines import LineParser
from llmb.records.record import RunRecord
from llmb.records.run_logs import RunLogs
from llmb.values.steps import Step


class Times(LineParser):
    """Parser of lines such as ``step 3 0.5``."""

    needles = (b"step ",)

    def read_line(self, line: bytes) -> Any:
        _, step, time_s = line.split()
        yield Step(step=int(step), time_s=float(time_s))


def test_the_steps_of_the_last_measured_phase_count_whatever_its_name(tmp_path: Path) -> None:
    phases = [SimpleNamespace(name=name, measured=True) for name in ("burn-in", "train")]
    plan: Any = SimpleNamespace(
        job=SimpleNamespace(phases=phases, sidecars=()),
        script=SimpleNamespace(logs={each.name: (f"/work/{each.name}.0.log",) for each in phases}, secrets=()),
        run=None,
        tasks=(),
        secrets=(),
    )
    framework: Any = SimpleNamespace(parse_log=lambda run: Times())
    scheduler: Any = SimpleNamespace(parse_log=lambda run: None)
    logs = RunLogs(plan, RunRecord(tmp_path), framework, scheduler)
    logs.add("/work/burn-in.0.log", b"step 1 9.0\nstep 2 9.0\n", is_last=True)
    logs.add("/work/train.0.log", b"step 1 0.5\nstep 2 0.5\n", is_last=True)

    assert [step.time_s for step in logs.series.steps] == [0.5, 0.5]
