"""Runs whose job reports GPUs of another type than that of the spec, as on a partition with several types."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import llmb

B200 = "the job ran on NVIDIA B200, not h100"


def run_on(toy: Any, monkeypatch: pytest.MonkeyPatch, product: str, recipe: str) -> Any:
    """Run a recipe for H100 on a machine whose nvidia-smi lists one GPU of this product."""
    program = toy.folder / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text(f'#!/bin/bash\n[[ $* = *driver_version* ]] && echo "580.159.04, {product}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    framework = {"journal": "/dev/null"}
    [result] = toy.runs("run", toy.spec(workload={"recipe": recipe}, framework=framework, target={"machine_gpus": 1}))
    return result


def test_a_run_on_other_gpus_has_no_verdict(toy: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = run_on(toy, monkeypatch, "NVIDIA B200", "toy/judged")
    assert (result["state"], result["verdict"], result["reason"]) == ("completed", "undecided", B200)
    assert result["notes"] == []  # it is the reason
    bundle = toy.llmb("bundle", result["run_id"], "-o", tmp_path / "bundle.tar.gz")
    assert bundle.returncode == 0
    assert llmb.verify_bundle(tmp_path / "bundle.tar.gz").mismatches == ()


def test_a_run_on_other_gpus_without_a_baseline_has_a_warning(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_on(toy, monkeypatch, "NVIDIA B200", "toy/tiny")
    assert (result["verdict"], result["notes"]) == (None, [f"warning: {B200}"])


@pytest.mark.parametrize("product", ["NVIDIA H100 80GB HBM3", "NVIDIA T400"])
def test_gpus_of_the_type_and_unknown_ones_are_judged(toy: Any, monkeypatch: pytest.MonkeyPatch, product: str) -> None:
    assert run_on(toy, monkeypatch, product, "toy/judged")["verdict"] == "pass"


@pytest.mark.parametrize("damage", ["x = ", "[provenance]\ngpu = 5\n"])
def test_a_damaged_file_does_not_prevent_the_result(toy: Any, damage: str) -> None:
    spec = toy.spec(framework={"gate": str(toy.gate), "journal": "/dev/null"})
    assert toy.llmb("run", spec, "--detach").returncode == 0
    [record] = toy.records
    text = (record / "run.toml").read_text()
    running = toy.start("attach", record.name)
    toy.wait_for_state("running")
    (record / "run.toml").write_text(text.partition("[provenance]")[0] + damage)
    toy.gate.touch()
    running.communicate()
    assert '"event": "ended"' in (record / "events.jsonl").read_text()
