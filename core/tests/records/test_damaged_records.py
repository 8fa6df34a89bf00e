"""Damaged records and records of others: each is one run of the list, and hides no other run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from llmb import RecordError, RunResult, attach, cancel, find_run, list_runs
from llmb.paths import runs_folder
from llmb.records.record import RunRecord

DAMAGED = "abcde-damaged"


@pytest.fixture
def damaged() -> Path:
    """Create two records. Return the directory of the one to damage."""
    for name in ("k3x9f-intact", DAMAGED):
        record = RunRecord(runs_folder() / name)
        record.create('[workload]\nrecipe = "a/b"\ngpus = 8\n[provenance]\ncreated = "2026"\n', "")
        record.write_result({"reason": "", "verdict": "pass", "failure": None}, [])
    return runs_folder() / DAMAGED


def listed() -> RunResult:
    """Return the damaged run of the list, after checking that the other run is there."""
    runs = {run.run_id: run for run in list_runs()}
    assert runs.pop("k3x9f-intact").verdict == "pass"
    [other] = runs.values()
    assert other == next(run for run in list_runs() if run.run_id == other.run_id)  # from the index too
    return other


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (write("result.json", "[1"), "result.json is damaged"),
        (write("result.json", "[" * 100_000), "result.json is damaged"),
        (write("result.json", '{"reason": 3}'), "damaged record: reason: invalid value 3; expected a string"),
        (write("result.json", '{"metrics": {"step_time_s": "x"}}'), "damaged record: metrics"),
        (write("result.json", '{"metrics": 7, "failure": {"line": []}}'), "damaged record: metrics"),
        (write("result.json", '{"failure": {"cause": {}}}'), "damaged record: failure"),
        (write("result.json", '{"steady_state": {"spikes": [1]}, "interval": 3}'), "damaged record: "),
        (write("result.json", '{"window": {"step_time_s": 0, "count": 1}}'), "damaged record: window"),
        (write("result.json", '{"steady_state": {"step_time_s": 7, "count": -1}}'), "damaged record: steady_state"),
        (write("result.json", '{"metrics": {"baseline": {"step_time_s": -7.5}}}'), "damaged record: metrics"),
        (write("result.json", '{"metrics": {"baseline": {"step_time_s": 1e308}}}'), "damaged record: metrics"),
        (write("result.json", '{"metrics": {"mfu": 1%s}}' % ("0" * 400)), "damaged record: metrics"),
        (write("result.json", '{"steady_state": {"autocorrelation": 3}}'), "damaged record: steady_state"),
        (write("run.toml", '[workload]\ngpus = "many"\nrecipe = 1'), "damaged record: recipe: invalid value 1"),
        (write("run.toml", f'[workload]\ngpus = {10**30}\nrecipe = "a/b"\n'), ""),
        (write("run.toml", "\x00\x1b["), "run.toml is damaged"),
        (write("run.toml", "a = " + "[" * 100_000), "run.toml is damaged"),
        (write("events.jsonl", '{"event": "ended", "state": "won"}\n{"event": "queued", "job_id": 3}\n'), ""),
        (write("events.jsonl", '{"event": "running", "time": "x"}\n' + "[" * 100_000 + "\n"), ""),
        (write("events.jsonl", '{"event": "runn\n\x00\x00\n'), "events.jsonl is damaged: no line is an event of a run"),
    ],
)
def test_a_damaged_record_is_a_run_with_the_reason(
    damaged: Path, damage: Callable[[Path], object], reason: str
) -> None:
    damage(damaged)
    assert reason in listed().reason


@pytest.mark.parametrize("torn", ["", '{"time": 1, "event": "plan', "\x00\x00"])
def test_a_torn_line_of_a_killed_process_is_no_damage(damaged: Path, torn: str) -> None:
    write("events.jsonl", torn)(damaged)
    assert (listed().state, listed().reason) == ("planned", "")


def test_a_run_whose_events_are_damaged_is_neither_shown_nor_followed(damaged: Path) -> None:
    """Its job would be submitted again."""
    write("events.jsonl", "[1]\n")(damaged)
    for command in (find_run, attach, cancel):
        wanted = DAMAGED if command is find_run else [DAMAGED]
        with pytest.raises(RecordError, match=r"events\.jsonl is damaged: no line is an event of a run$"):
            command(wanted)


def test_a_record_with_a_name_that_is_not_utf8_is_listed(damaged: Path) -> None:
    damaged.rename(damaged.with_name(os.fsdecode(b"\xff\x1b[31m")))
    assert listed().run_id == "\udcff\x1b[31m"
