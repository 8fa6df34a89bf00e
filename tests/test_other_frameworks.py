"""Logs of another framework than the one that the user named: ``llmb parse`` names the framework that wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

NEMO_STEP = b"Training epoch 0, iteration 0/19 | lr: 1e-06 | global_step: 0\n"


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.mark.parametrize("named", [("--framework", "maxtext"), ("--recipe", "maxtext/llama2-70b")])
def test_the_framework_that_wrote_a_log_is_named(llmb: Llmb, tmp_path: Path, named: tuple[str, str]) -> None:
    log = tmp_path / "bad.log"
    log.write_bytes(NEMO_STEP)
    answer = llmb("parse", log, *named)
    assert (answer.status, answer.out) == (1, "")
    advice = "this is a log of nemo_launcher: use --framework nemo_launcher, or a recipe of nemo_launcher"
    assert answer.err == f"llmb: {log}: no maxtext steps found; {advice}\n"


def test_the_framework_that_wrote_a_folder_is_found_in_its_first_three_logs(llmb: Llmb, tmp_path: Path) -> None:
    for name in ("a.log", "b.log", "c.log"):
        (tmp_path / name).write_text("nothing\n")
    (tmp_path / "d.log").write_bytes(NEMO_STEP)
    unknown = f"llmb: {tmp_path}: no file with maxtext steps found; check --framework"
    assert llmb("parse", tmp_path, "--framework", "maxtext").err.splitlines()[-1] == unknown
    (tmp_path / "c.log").write_bytes(NEMO_STEP)
    known = f"llmb: {tmp_path}: no maxtext steps found; these are logs of nemo_launcher: use --framework nemo_launcher"
    assert llmb("parse", tmp_path, "--framework", "maxtext").err.splitlines()[-1].startswith(known)
