"""The runs of a sweep can be distinguished wherever they are listed, in tables and in JSON."""

from __future__ import annotations

import fcntl
import json
import tomllib
from typing import Any

import llmb

SWEEP: dict[str, list[Any]] = {"env.LEVEL": ["low", "high"], "measure.window": ["last", [2, 3]]}
VALUES = [
    {"env.LEVEL": level, "measure.window": window} for level in SWEEP["env.LEVEL"] for window in SWEEP["measure.window"]
]


def test_runs_are_listed_in_the_order_of_the_sweep_with_values_and_repeat(toy: Any) -> None:
    workload = llmb.load(toy.spec(workload={"repeats": 2}, sweep=SWEEP))
    with llmb.start(workload) as session:
        started = session.results
    listed = toy.runs("runs")
    assert [run["run_id"] for run in listed] == [run.run_id for run in started]
    assert [run["sweep"] for run in listed] == [values for values in VALUES for _ in range(2)]
    assert [(run["repeat"], run["repeats"]) for run in listed] == 4 * [(1, 2), (2, 2)]
    assert [run.as_dict() for run in started] == listed
    assert llmb.find_run(listed[3]["run_id"]).as_dict() == listed[3]
    assert [llmb.find_run(each.run_id).sweep for each in started] == [placed.swept for placed in workload.runs]
    with llmb.attach([listed[3]["run_id"]]) as again:
        assert again.results[0] == started[3]
    with llmb.attach() as all_again:
        assert all_again.run_ids == [run.run_id for run in started]


def test_a_single_run_and_a_repeated_run_toml_have_no_sweep(toy: Any) -> None:
    with llmb.start(llmb.load(toy.spec(sweep={"env.LEVEL": ["low"]}))) as session:
        [swept] = session.results
    assert dict(swept.sweep) == {"env.LEVEL": "low"}
    [again] = llmb.load(f"{swept.directory}/run.toml").runs
    assert (dict(again.swept), again.repeats, again.run.env["LEVEL"]) == ({}, 1, "low")


def test_a_dry_run_names_the_values_of_each_run(toy: Any) -> None:
    spec = toy.spec(workload={"repeats": 2}, sweep=SWEEP)
    headings = [line for line in toy.llmb("run", spec, "--dry-run").stdout.splitlines() if "(repeat" in line]
    told = "repeat 2 of 2; env.LEVEL = low, measure.window = [2, 3]"
    assert headings[3] == f"# tiny-h100-bf16-1 ({told}): toy/tiny, release 1.0"
    runs = json.loads(toy.llmb("run", spec, "--dry-run", "--json").stdout)["runs"]
    assert [(run["sweep"], run["repeat"]) for run in runs][3] == (VALUES[1], 2)


def test_the_record_of_a_single_run_has_no_sweep(toy: Any) -> None:
    with llmb.start(llmb.load(toy.spec())) as session:
        [run] = session.results
    with open(f"{run.directory}/run.toml", "rb") as file:
        assert not tomllib.load(file)["provenance"].keys() & {"sweep", "repeats"}
    assert (run.as_dict()["sweep"], run.repeat, run.repeats) == ({}, 1, 1)


def test_runs_on_one_machine_take_their_turns_in_the_order_of_their_spec(toy: Any) -> None:
    levels = [str(level) for level in range(6)]
    with (
        open(toy.folder / "machine.lock", "w") as lock,
        llmb.start(llmb.load(toy.spec(sweep={"env.LEVEL": levels}))) as session,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        session.wait(until="submitted")
    begun = [line.split()[1] for line in toy.wait_for_journal("begin", len(levels))]
    assert begun == list(session.run_ids)


def test_a_limited_sweep_is_continued_by_attach(toy: Any) -> None:
    spec = toy.spec(sweep={"env.LEVEL": ["a", "b", "c"]}, target={"max_jobs": 1})
    with open(toy.folder / "machine.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        detached = toy.llmb("run", spec, "--detach")
        states = [run["state"] for run in toy.runs("runs")]
    assert states == ["queued", "planned", "planned"]
    ids = " ".join(run["run_id"] for run in toy.runs("runs"))
    assert detached.stderr.splitlines()[-2:] == [
        "not submitted yet: 2 runs; they continue only while llmb follows them",
        f"detached; follow with: llmb attach {ids}",
    ]
    assert toy.llmb("attach").returncode == 0
    assert [line.split()[0] for line in toy.journal()] == ["begin", "end"] * 3
    assert {run["state"] for run in toy.runs("runs")} == {"completed"}


def test_a_run_that_waits_for_runs_of_no_process_names_them(toy: Any) -> None:
    spec = toy.spec(sweep={"env.LEVEL": ["a", "b", "c"]}, target={"max_jobs": 1})
    with open(toy.folder / "machine.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        toy.llmb("run", spec, "--detach")
        first, second, _ = [run["run_id"] for run in toy.runs("runs")]
        waiting = toy.start("attach", second)
        toy.wait_for_message(
            waiting,
            f"{second} waits for {first} (target.max_jobs = 1); "
            f"if no other process follows these, run `llmb attach {first}`",
        )
    assert toy.llmb("attach", first).returncode == 0
    waiting.communicate()
    assert toy.runs("runs")[1]["state"] == "completed"
