"""Releases of a recipe: what a spec and the record of a run mean, and what a run of each needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts.forked import run_llmb

import llmb
from llmb.spec.spec_of_run import build_run_toml

ADDRESS = "megatron_bridge/llama3.1-8b"


def spec_of(recipe: str, **tables: dict[str, Any]) -> dict[str, Any]:
    workload = {"recipe": recipe, "gpu_type": "gb200", "dtype": "fp8", "gpus": 8, **tables.pop("workload", {})}
    return {"workload": workload, "target": {"scheduler": "slurm", "workdir": "/w"}, **tables}


def release_of(tables: dict[str, Any], *overrides: str) -> str:
    [loaded] = llmb.load(tables, overrides=overrides).runs
    return loaded.run.release


@pytest.mark.parametrize(("written", "exact"), [("", "26.06.01"), ("@25.10", "25.10.02"), ("@25.12.00", "25.12.00")])
def test_a_record_names_the_exact_release_and_reruns_it(written: str, exact: str) -> None:
    [loaded] = llmb.load(spec_of(ADDRESS + written, workload={"variant": "mxfp8"})).runs
    record = build_run_toml(loaded, {"created": "2026-01-01"})

    assert record["workload"]["recipe"] == f"{ADDRESS}@{exact}"
    assert record["workload"]["variant"] == "mxfp8"
    assert release_of(record) == exact
    [again] = llmb.load(record).runs
    assert (again.run.parallelism, again.run.differences) == (loaded.run.parallelism, ())


@pytest.mark.parametrize(("written", "meant"), [("", "25.10.00"), ("@25.12", "25.12.00")])
def test_an_old_record_reruns_the_release_that_its_address_meant(written: str, meant: str) -> None:
    old = spec_of(ADDRESS + written, provenance={"run_id": "abcde-old"})

    assert release_of(old) == meant
    assert release_of(old, f'workload.recipe="{ADDRESS}"') == "26.06.01"


def dry_run(tmp_path: Path, recipe: str, *options: str, **env: str) -> str:
    file = tmp_path / "spec.toml"
    file.write_text(tomli_w.dumps(spec_of(recipe)))
    done = run_llmb(["run", str(file), "--dry-run", *options], env={"PATH": "/bin:/usr/bin", "HOME": "/nowhere", **env})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_dry_run_reports_the_token_before_anything_is_imported(tmp_path: Path) -> None:
    without = dry_run(tmp_path, f"{ADDRESS}@25.12.00")
    missing = "# needs HF_TOKEN in the environment of llmb, where it is not set"

    assert missing in without
    assert without.index(missing) < without.index("container image")
    assert "where it is not set" not in dry_run(tmp_path, f"{ADDRESS}@25.12.00", HF_TOKEN="hf_1")
    [run] = json.loads(dry_run(tmp_path, f"{ADDRESS}@25.12.00", "--json"))["runs"]
    assert run["secrets"] == ["HF_TOKEN"]
    assert "HF_TOKEN" not in dry_run(tmp_path, f"{ADDRESS}@25.12.02")
    assert "HF_TOKEN" not in dry_run(tmp_path, f"{ADDRESS}@25.10.00")


def test_a_proxy_is_named_as_such_in_every_view(toy: Any) -> None:
    run = toy.run(model={"layers": 1})
    [listed] = toy.runs("runs")
    shown = toy.llmb("show", run["run_id"]).stdout

    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert "-proxy-" in run["run_id"]
    assert listed["run_id"] == run["run_id"]
    assert run["notes"][0].startswith("proxy: the model is not the recipe's (1 of ")
    assert "proxy: the model is not the recipe's" in " ".join(shown.split())
    assert "proxy" in toy.llmb("run", toy.spec(model={"layers": 1}), "--dry-run").stdout
    assert "proxy" not in toy.run()["run_id"]
