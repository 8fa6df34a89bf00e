"""Steps of a run from the copies of its logs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llmb.logs.steps.line_parser import LineParser
from llmb.records.log_copies.copy_and_parse_logs import LogCopies
from llmb.records.log_copies.mask_cut_lines import LINE_BYTES
from llmb.records.record import RunRecord
from llmb.values.steps import Step


class Times(LineParser):
    """Parser of lines such as ``step 3 0.5``."""

    needles = (b"step ",)

    def read_line(self, line: bytes) -> Any:
        _, step, time_s = line.split()
        yield Step(step=int(step), time_s=float(time_s))


def logs_of(folder: Path, *secrets: str) -> LogCopies:
    """Return the logs of a run with two phases. ``secrets`` are names of variables."""
    phases = [SimpleNamespace(name=name, measured=True) for name in ("burn-in", "train")]
    plan: Any = SimpleNamespace(
        job=SimpleNamespace(phases=phases, sidecars=()),
        script=SimpleNamespace(logs={each.name: (f"/work/{each.name}.0.log",) for each in phases}, secrets=()),
        run=None,
        tasks=(),
        secrets=secrets,
    )
    framework: Any = SimpleNamespace(parse_log=lambda run: Times())
    scheduler: Any = SimpleNamespace(parse_log=lambda run: None)
    return LogCopies(plan, RunRecord(folder), framework, scheduler)


def test_the_steps_of_the_last_measured_phase_count_whatever_its_name(tmp_path: Path) -> None:
    logs = logs_of(tmp_path)
    logs.add("/work/burn-in.0.log", b"step 1 9.0\nstep 2 9.0\n", is_last=True)
    logs.add("/work/train.0.log", b"step 1 0.5\nstep 2 0.5\n", is_last=True)

    assert [step.time_s for step in logs.series.steps] == [0.5, 0.5]


def test_a_secret_that_is_cut_in_one_log_is_masked_although_another_log_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "correct-horse")
    logs = logs_of(tmp_path, "MINE")
    logs.add("/work/burn-in.0.log", b"0: " + b"x" * (LINE_BYTES - 8) + b"correct-\n1: a\n", is_last=False)
    logs.add("/work/train.0.log", b"0: loading\n", is_last=False)
    logs.add("/work/burn-in.0.log", b"0: horse\n", is_last=True)
    assert b"horse" not in (RunRecord(tmp_path).logs / "burn-in.0.log").read_bytes()
