"""Accounting that lags behind the queue of a real Slurm cluster."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any

import pytest

import llmb
from llmb.state_machine.events import Ended, JobEnded

pytestmark = pytest.mark.real

LATE_SACCT = """#!/bin/bash
# Print what sacct prints, but no ends of jobs (field 5) before {gate} exists.
output=$({sacct} "$@") || exit
[ -e {gate} ] || output=$(sed -E 's/^(([^|]*[|]){{4}})[0-9]+/\\1Unknown/' <<<"$output")
printf '%s\\n' "$output"
"""


def test_a_run_waits_for_accounting_while_another_run_ends(toy_slurm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    accounting, open_gate = toy_slurm.folder / "accounting", toy_slurm.folder / "open"
    program = toy_slurm.folder / "bin/sacct"
    program.parent.mkdir()
    program.write_text(LATE_SACCT.format(gate=accounting, sacct=shutil.which("sacct")))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    open_gate.touch()
    spec = toy_slurm.spec(sweep={"framework.gate": [str(open_gate), str(toy_slurm.gate)]})
    ends: list[type] = []
    with llmb.start(llmb.load(spec)) as session:
        for event in session.events(sleep=lambda _pause_s: time.sleep(0.1)):
            if isinstance(event, JobEnded | Ended):
                ends.append(type(event))
                [toy_slurm.gate, accounting, accounting, accounting][len(ends) - 1].touch()
        results = session.results
    assert ends == [JobEnded, JobEnded, Ended, Ended]
    assert [result.state for result in results] == ["completed"] * 2
    assert all(attempt.end for result in results for attempt in result.attempts)
