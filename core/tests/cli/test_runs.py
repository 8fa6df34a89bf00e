"""``llmb runs``: filters, order, limit and output for programs."""

from __future__ import annotations

import pytest
from parts.command_line import Llmb, command_line
from parts.recorded_runs import record_runs

from llmb.drive.record import runs_folder

STEADY = [7.0] * 10


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


def test_ids_are_for_other_commands(llmb: Llmb) -> None:
    small, large = record_runs([STEADY]), record_runs([STEADY], workload={"gpus": 128})
    assert llmb("runs", "gpus=64", "--ids").out.split() == small
    assert llmb("runs", "gpus=100..512", "--ids").out.split() == large
    assert llmb("runs", "--ids", "--limit", "1").out.count("\n") == 1
    nothing = llmb("runs", "verdict=fail", "--ids")
    assert (nothing.status, nothing.out, nothing.err) == (0, "", "")


def test_json_has_all_runs_that_match(llmb: Llmb) -> None:
    ids = record_runs([STEADY, STEADY])
    assert {run["run_id"] for run in llmb("runs", "--json").json["runs"]} == set(ids)
    assert len(llmb("runs", "--json", "--limit", "1").json["runs"]) == 1
    assert llmb("runs", "state=failed", "--json").json == {"runs": []}


def test_a_long_list_ends_with_the_number_of_all_runs(llmb: Llmb) -> None:
    record_runs([STEADY] * 3)
    answer = llmb("runs", "--limit", "2")
    assert answer.out.count("completed") == 2
    assert "2 of 3 runs; --all lists all" in answer.out
    assert "--all lists all" not in llmb("runs", "--all").out


def test_an_invalid_filter_names_the_closest_one(llmb: Llmb) -> None:
    for argument, message in (
        ("gpu=3", "unknown filter 'gpu=3'; expected recipe, image, target"),
        ("state=complete", "did you mean 'completed'?"),
        ("gpus", "invalid filter 'gpus'; expected key=value"),
        ("since=yesterday", "invalid since 'yesterday'; expected 7d or 2026-11-01"),
    ):
        answer = llmb("runs", argument)
        assert (answer.status, answer.out) == (2, "")
        assert message in answer.err


def test_a_damaged_record_is_named_in_one_line(llmb: Llmb) -> None:
    [run_id] = record_runs([STEADY])
    (runs_folder() / run_id / "run.toml").write_text("[")
    answer = llmb("runs")
    assert (answer.status, answer.err.count("\n")) == (0, 1)
    assert answer.err.startswith(f"llmb: {run_id}: ")
    assert "run.toml is damaged" in answer.err
