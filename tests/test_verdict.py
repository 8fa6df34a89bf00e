"""The comparison of a run with its published baseline, end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def judged(toy: Any, *arguments: str, **tables: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Run a spec of the judged recipe, as published. Return the exit code and the run."""
    workload = {"recipe": "toy/judged", "dtype": "bf16"} | tables.pop("workload", {})
    spec = toy.spec(workload=workload, **({"framework": {"journal": "/dev/null"}} | tables))
    done = toy.llmb("run", spec, "--json", *arguments)
    [run] = json.loads(done.stdout)["runs"]
    return done.returncode, run


def test_a_run_within_the_tolerance_passes(toy: Any) -> None:
    status, run = judged(toy, "--check")
    assert (status, run["verdict"]) == (0, "pass")
    assert run["metrics"]["baseline"]["step_time_ratio"] == pytest.approx(0.5 / 0.49)
    assert run["reason"] == (
        "ratio 1.020, between 1.004 and 1.037; the limit is 1.05; "
        "the noise is assumed, because a log has fewer than 8 step times"
    )


@pytest.mark.parametrize(("check", "status"), [((), 0), (("--check",), 3)])
def test_a_slower_run_fails_and_with_check_this_is_the_exit_code(toy: Any, check: tuple[str, ...], status: int) -> None:
    found, run = judged(toy, *check, workload={"dtype": "fp8"})
    assert (found, run["state"], run["verdict"]) == (status, "completed", "fail")


def test_the_spec_sets_the_tolerance(toy: Any) -> None:
    _, run = judged(toy, workload={"dtype": "fp8"}, measure={"tolerance": 0.3})
    assert run["verdict"] == "pass"


def test_a_run_that_differs_from_the_published_one_is_undecided_with_a_reason(toy: Any) -> None:
    status, run = judged(toy, "--check", model={"layers": 2})
    assert (status, run["verdict"]) == (0, "undecided")
    assert "model.layers" in run["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tables", "note"),
    [
        ({"workload": {"recipe": "toy/tiny"}}, "there is no verdict"),
        ({"model": {"layers": 2}}, "the verdict is undecided"),
        ({"workload": {"recipe": ["toy/judged", "toy/tiny"]}}, "1 of 2 verdicts are missing or undecided"),
        ({"framework": {"nan_step": 3}}, None),
        ({}, None),
    ],
)
def test_check_notes_what_exit_code_0_means_without_a_clear_verdict(
    toy: Any, tables: dict[str, Any], note: str | None
) -> None:
    usual = {"workload": {"recipe": "toy/judged"}, "framework": {"journal": "/dev/null"}}
    spec = toy.spec(**{name: usual.get(name, {}) | tables.get(name, {}) for name in usual | tables})
    expected = [f"llmb: --check: {note}; exit code 0 means only that no verdict is fail"] if note else []
    done = toy.llmb("run", spec, "--check")
    assert [line for line in done.stderr.splitlines() if "--check" in line] == expected
    again = toy.llmb("attach", *(record.name for record in toy.records), "--check")
    assert [line for line in again.stderr.splitlines() if "--check" in line] == expected


def test_a_profiled_run_is_never_judged(toy: Any) -> None:
    _, run = judged(toy, profile={"tool": "nsys"})
    assert run["verdict"] is None
    assert "profile" in run["reason"]


@pytest.mark.parametrize(
    ("window", "end_step", "whole"), [("last", 3, False), ([1, 3], 3, True), ([3, 4], 3, False), ([4, 4], 4, True)]
)
def test_a_failed_run_has_window_complete(toy: Any, window: object, end_step: int, whole: bool) -> None:
    framework = {"end": "exit 3", "end_step": end_step, "journal": "/dev/null"}
    run = toy.run(measure={"window": window}, framework=framework)
    assert (run["state"], run["metrics"]["step_time_s"], run["window_complete"]) == ("failed", 0.5, whole)
    assert (run["steps_done"], run["steps"]) == (end_step, 5)
    assert f"after {end_step} of 5 steps" in run["reason"]


def test_a_run_that_failed_is_undecided(toy: Any) -> None:
    status, run = judged(toy, "--check", framework={"nan_step": 3})
    assert (status, run["state"], run["verdict"]) == (1, "failed", "undecided")


def test_repeats_are_judged_together(toy: Any) -> None:
    workload = {"recipe": "toy/judged", "dtype": "bf16", "repeats": 2}
    spec = toy.spec(workload=workload, framework={"journal": "/dev/null"})
    document = json.loads(toy.llmb("run", spec, "--json", "--check").stdout)
    [together] = document["sets"]
    ids = [run["run_id"] for run in document["runs"]]
    assert (together["runs"], together["repeats"], together["left_out"]) == (ids, 2, [])
    assert (together["verdict"], together["more_repeats"]) == ("pass", None)
    low, high = together["interval"]
    single_low, single_high = document["runs"][0]["interval"]
    assert single_low < low < together["step_time_ratio"] < high < single_high

    shown = json.loads(toy.llmb("show", ids[1], "--json").stdout)
    assert (shown["run_id"], shown["sets"]) == (ids[1], [together])
    assert f"2 repeats  {', '.join(ids)}\npass       ratio 1.020" in toy.llmb("show", ids[0]).stdout


def test_runs_of_a_sweep_are_no_repeats_of_each_other(toy: Any) -> None:
    workload = {"recipe": "toy/judged", "dtype": ["bf16", "fp8"]}
    spec = toy.spec(workload=workload, framework={"journal": "/dev/null"})
    done = toy.llmb("run", spec, "--json", "--check")
    sets = json.loads(done.stdout)["sets"]
    assert (done.returncode, [each["verdict"] for each in sets]) == (3, ["pass", "fail"])


def test_an_impossible_mfu_has_a_warning_in_the_result(toy: Any) -> None:
    run = toy.run(model={"layers": 800_000})
    assert run["metrics"]["mfu"] > 1
    assert any(note.startswith("warning: MFU above 100 % is impossible: check the GPU type") for note in run["notes"])


def test_the_list_of_runs_has_one_note_on_the_impossible_mfu_of_many_runs(toy: Any) -> None:
    spec = toy.spec(model={"layers": 800_000}, sweep={"env.LEVEL": ["a", "b", "c", "d", "e"]})
    assert toy.llmb("run", spec).returncode == 0
    runs = toy.llmb("runs").stdout
    [note] = [line for line in runs.splitlines() if line.startswith("note: ")]
    ids = [line.split()[0] for line in runs.splitlines()[1:6]]
    assert note.startswith(f"note: {', '.join(ids[:3])} and 2 more: MFU above 100 % is impossible")


def test_a_run_that_its_gpus_cannot_reach_is_undecided(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = tmp_path / "llmb"
    pack.mkdir()
    slow = '[h100]\ngpus_per_node = 8\npeak_flops = { bf16 = 1e6, fp8 = 1e6 }\nsource = "nobody"\n'
    (pack / "accelerators.toml").write_text(slow)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    status, run = judged(toy, "--check")
    assert run["metrics"]["mfu"] > 1
    assert (status, run["state"], run["verdict"], run["notes"]) == (0, "completed", "undecided", [])
    assert run["reason"].startswith("MFU above 100 % is impossible (")
    shown = toy.llmb("show", run["run_id"]).stdout
    assert shown.count("MFU above 100 %") == 1
    [listed] = [line for line in toy.llmb("runs").stdout.splitlines() if line.startswith("note: ")]
    assert "MFU above 100 % is impossible" in listed
