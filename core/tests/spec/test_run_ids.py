"""Run ids: drawn when a workload is started or planned, so that it can be started any number of times."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import llmb
from llmb.spec.run_ids import draw_run_ids


def test_a_loaded_workload_has_no_run_ids_and_no_directories(spec: Any) -> None:
    [placed] = spec.usual(target={"workdir": "/work"}).load().runs
    assert (placed.run.id, placed.run.paths) == ("", llmb.Paths(run="", cache="/work/cache"))


def test_each_run_gets_an_id_and_the_directory_of_that_id(spec: Any) -> None:
    workload = spec.usual(workload={"repeats": 3}, target={"workdir": "/work"}).load()
    runs = [each.run for each in draw_run_ids(workload).runs]
    assert len({run.id for run in runs}) == 3
    for run in runs:
        assert run.id[6:] == "llama2-tiny-cpu-fp32-1"
        assert run.paths == llmb.Paths(run=f"/work/runs/{run.id}", cache="/work/cache")


def test_the_id_of_a_run_with_a_long_name_is_a_valid_name_of_a_folder(spec: Any) -> None:
    workload = spec.usual().load()
    [placed] = workload.runs
    named = attrs.evolve(placed, run=attrs.evolve(placed.run, name="x" * 119 + "-" + "y" * 130))
    [drawn] = draw_run_ids(attrs.evolve(workload, runs=(named,))).runs
    assert drawn.run.id[6:] == "x" * 119


def test_an_id_that_was_drawn_before_is_drawn_again(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = iter("aaaaa" * 3 + "bbbbb" + "aaaaa" + "ccccc")
    monkeypatch.setattr("llmb.spec.run_ids.secrets.choice", lambda _alphabet: next(letters))
    runs = draw_run_ids(spec.usual(workload={"repeats": 3}).load()).runs
    assert [each.run.id[:5] for each in runs] == ["aaaaa", "bbbbb", "ccccc"]


def test_a_plan_draws_ids_only_for_a_workload_without_ids(spec: Any) -> None:
    workload = spec.usual().load()
    [first], [second] = llmb.plan(workload), llmb.plan(workload)
    assert first.run.id != second.run.id
    drawn = draw_run_ids(workload)
    assert llmb.plan(drawn)[0].run.id == drawn.runs[0].run.id
