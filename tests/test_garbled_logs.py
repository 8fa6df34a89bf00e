"""A log at which a plugin's parser fails. Only its own run has no metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from parts.repository import ROOT

import llmb

LINE = "toy step 3 time 0.50.5 loss 2.5"
TOY = (ROOT / "tests/toy/llmb_toy/plugin.py").read_text().splitlines()
[PLACE] = [f"(plugin.py, line {number})" for number, line in enumerate(TOY, 1) if "time_s=float(" in line]
WHY = f"ValueError: could not convert string to float: b'0.50.5' {PLACE}"
TOLD = f"framework plugin 'toy' (llmb-toy 1.0): the log parser of parse_log() failed: {WHY} in the line {LINE!r}"


def test_the_error_is_the_reason_of_the_run_and_its_log_is_kept_and_the_others_complete(toy: Any) -> None:
    done = toy.llmb("run", toy.spec(sweep={"framework.garbled_step": [3, 0]}), "--json")
    garbled, whole = json.loads(done.stdout)["runs"]
    assert (done.returncode, whole["state"], garbled["state"]) == (1, "completed", "failed"), done.stderr
    assert garbled["reason"].endswith(f"{TOLD} (2 of 5 steps read)")
    assert f"`llmb parse {garbled['directory']}/logs --framework toy`" in garbled["failure"]["remedy"]
    [log] = (Path(garbled["directory"]) / "logs").iterdir()
    assert "toy step 5" in log.read_text()


def test_it_can_be_cancelled_and_attached_to(toy: Any) -> None:
    session = llmb.start(llmb.load(toy.spec(framework={"garbled_step": 3, "gate_step": 3, "gate": str(toy.gate)})))
    [record] = toy.records
    [run_id] = session.run_ids

    def cancel_once_it_is_read(_pause_s: float) -> None:
        if any(LINE in log.read_text() for log in (record / "logs").glob("*")):
            llmb.cancel([run_id]).close()

    session.wait(sleep=cancel_once_it_is_read)
    assert [result.state for result in session.results] == ["cancelled"]
    assert [result.state for result in llmb.attach([run_id]).results] == ["cancelled"]


def logs(folder: Path) -> list[Path]:
    """Write a complete log, and one at which the toy's parser fails."""
    whole = "".join(f"toy step {step} time 0.5 loss 2.5\n" for step in (1, 2))
    for name, text in {"bad.log": f"{whole}{LINE}\n", "good.log": whole}.items():
        (folder / name).write_text(text)
    return [folder / "bad.log", folder / "good.log"]


@pytest.mark.parametrize("whole_folder", [True, False])
def test_of_several_logs_the_others_are_parsed(toy: Any, tmp_path: Path, whole_folder: bool) -> None:
    bad, good = logs(tmp_path)
    asked = [str(tmp_path)] if whole_folder else [str(bad), str(good)]
    done = toy.llmb("parse", *asked, "--framework", "toy")
    assert (done.returncode, done.stderr) == (2, f"llmb: {bad}: {TOLD}\n")
    assert "1 succeeded, 0 failed" in done.stdout
    document = json.loads(toy.llmb("parse", *asked, "--framework", "toy", "--json").stdout)
    assert [log["path"] for log in document["logs"]] == [str(good)]
    assert [(fault["file"], fault["message"]) for fault in document["errors"]] == [(str(bad), TOLD)]


def test_alone_its_error_is_one_line(toy: Any, tmp_path: Path) -> None:
    bad, _ = logs(tmp_path)
    done = toy.llmb("parse", str(bad), "--framework", "toy")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"llmb: {bad}: {TOLD}\n")
