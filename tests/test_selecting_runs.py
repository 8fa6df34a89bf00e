"""Runs that a command selects: by a prefix, by filters in braces, or the newest one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import llmb


def states(toy: Any) -> dict[str, str]:
    return {run["run_id"]: run["state"] for run in toy.runs("runs")}


def test_filters_select_the_unfinished_runs_that_cancel_names_and_cancels(toy: Any) -> None:
    ended = toy.run()["run_id"]
    kept, *wanted = [toy.record(f"toy{gpus}", workload={"gpus": gpus}) for gpus in (1, 2, 4)]
    cancelled = toy.llmb("cancel", "{gpus=2..8 state=planned}")
    assert cancelled.returncode == 0, cancelled.stderr
    [named] = [line for line in cancelled.stderr.splitlines() if line.startswith("llmb: cancelling")]
    assert set(named.removeprefix("llmb: cancelling ").split(", ")) == set(wanted)
    assert states(toy) == {ended: "completed", kept: "planned", **dict.fromkeys(wanted, "cancelled")}


def test_cancel_names_the_runs_that_ended_before(toy: Any) -> None:
    ended = toy.run()["run_id"]
    cancelled = toy.llmb("cancel", ended[:5])
    assert (cancelled.returncode, states(toy)) == (0, {ended: "completed"})
    assert cancelled.stderr.startswith(f"llmb: already ended: {ended}\n")


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ("{}", "{} matches every run; expected a filter such as '{gpus=64}'"),
        ("{ }", "{ } matches every run; expected a filter such as '{gpus=64}'"),
        (
            "{state=running,failed}",
            "invalid filter 'state=running,failed': a run that is failed cannot be cancelled; "
            "expected planned, preparing, submitting, queued, running",
        ),
        ("{verdict=fail}", "invalid filter 'verdict=fail': a run has a verdict only when it has ended"),
        ("{verdict!=pass}", "invalid filter 'verdict!=pass': a run has a verdict only when it has ended"),
        ("{state!=completed}", "invalid filter 'state!=completed': a run that is completed cannot be cancelled"),
        ("{state=runing}", "unknown state 'runing'"),
        ("{recipe=other/*}", "no unfinished run matches {recipe=other/*}; `llmb runs` lists all runs"),
        ("state=planned", "there is no run 'state=planned'; filters are written in braces: '{state=planned}'"),
    ],
)
def test_filters_of_cancel_that_make_no_sense_cancel_nothing(toy: Any, filters: str, message: str) -> None:
    run_id = toy.record()
    cancelled = toy.llmb("cancel", run_id, filters)
    assert cancelled.returncode == 2
    assert cancelled.stderr.startswith(f"llmb: {message}"), cancelled.stderr
    assert states(toy) == {run_id: "planned"}


@pytest.mark.parametrize("filters", ["{state=failed image=*24*}", "state=failed image=*24*"])
@pytest.mark.parametrize("command", ["show", "logs"])
def test_a_command_for_one_run_names_the_command_that_takes_filters(toy: Any, command: str, filters: str) -> None:
    shown = toy.llmb(command, filters)
    line = "expected one run instead of filters; `llmb runs state=failed 'image=*24*'` lists the runs that match"
    assert (shown.returncode, shown.stderr) == (2, f"llmb: {line}\n")


def test_attach_follows_the_unfinished_runs_that_match(toy: Any) -> None:
    toy.run()
    kept, wanted = toy.record("one"), toy.record("two", workload={"gpus": 2})
    assert [run["run_id"] for run in toy.runs("attach", "{gpus=2}")] == [wanted]
    assert (states(toy)[kept], states(toy)[wanted]) == ("planned", "completed")
    again = toy.llmb("attach", "{gpus=2}")
    assert again.returncode == 2
    assert again.stderr == "llmb: no unfinished run matches {gpus=2}; `llmb runs` lists all runs\n"


@pytest.fixture
def good_and_damaged(toy: Any) -> tuple[str, list[str]]:
    """Return the id of a run, and those of two runs with damaged records that the filter {gpus=1} selects too."""
    good, torn, foreign = [toy.record(name) for name in ("good", "torn", "foreign")]
    toy.runs("runs")
    damage_unnoticed(toy.home / "runs" / torn / "run.toml")
    (toy.home / "runs" / foreign / "run.toml").write_text("[workload]\ngpus = 1\n")
    return good, [torn, foreign]


@pytest.mark.parametrize(
    ("command", "status", "state", "message"),
    [("attach", 0, "completed", "llmb: skipping {id}: {file} is "), ("cancel", 2, "cancelled", "llmb: {file} is ")],
)
def test_a_damaged_record_does_not_stop_the_other_runs_of_a_filter(
    toy: Any, good_and_damaged: tuple[str, list[str]], command: str, status: int, state: str, message: str
) -> None:
    good, damaged = good_and_damaged
    done = toy.llmb(command, "{gpus=1}")
    assert (done.returncode, states(toy)[good]) == (status, state), done.stderr
    for each in damaged:
        assert done.stderr.count(message.format(id=each, file=toy.home / "runs" / each / "run.toml")) == 1, done.stderr
    again = toy.llmb(command, "{gpus=1}", "--json")
    assert (again.returncode, len(json.loads(again.stdout)["errors"])) == (2, len(damaged)), again.stdout
    alone = toy.llmb(command, damaged[0])
    assert (alone.returncode, "run.toml is damaged" in alone.stderr) == (2, True), alone.stderr


def test_attach_without_a_run_skips_damaged_records(toy: Any) -> None:
    nothing = toy.llmb("attach")
    run_id = toy.record()
    file = toy.home / "runs" / run_id / "run.toml"
    file.write_text("[workload]\n")
    damaged = toy.llmb("attach")
    assert (nothing.returncode, damaged.returncode) == (0, 0)
    assert nothing.stderr == "llmb: no run to follow; `llmb runs` lists all runs\n"
    assert damaged.stderr.startswith(f"llmb: skipping {run_id}: {file} is not the record of a run")
    assert damaged.stderr.endswith(nothing.stderr)


@pytest.mark.parametrize("runs", [["{gpus=1}"], ["foreign", "good"]])
def test_a_record_that_cannot_be_cancelled_is_an_error_after_the_other_runs_are_cancelled(
    toy: Any, runs: list[str]
) -> None:
    ids = {name: toy.record(name) for name in ("good", "foreign")}
    good, foreign = ids.values()
    (toy.home / "runs" / foreign / "cancel").symlink_to("/nowhere/cancel")  # even root cannot write there
    done = toy.llmb("cancel", *(ids.get(each, each) for each in runs))
    assert (done.returncode, states(toy)) == (2, {good: "cancelled", foreign: "planned"}), done.stderr
    assert f"llmb: cannot write the record {toy.home}/runs/{foreign}: " in done.stderr


def damage_unnoticed(file: Path) -> None:
    """Damage a file so that the index of runs does not notice it, as with a file that became unreadable."""
    before = file.stat()
    file.write_bytes(b"x" * before.st_size)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_the_library_accepts_the_same_filters(toy: Any) -> None:
    run_id = toy.record()
    with pytest.raises(llmb.SpecError, match="matches every run"):
        llmb.cancel(["{}"])
    [result] = llmb.cancel(["{recipe=toy/*}"]).wait()
    assert (result.run_id, result.state) == (run_id, "cancelled")


def test_show_and_logs_take_the_newest_run_and_name_it(toy: Any) -> None:
    commands = [["show"], ["logs"], ["logs", "-f"]]
    for command in commands:
        nothing = toy.llmb(*command)
        assert nothing.returncode == 2, command
        assert nothing.stderr == f"llmb: no runs in {toy.home}; `llmb run SPEC` starts some\n"
    toy.run()
    newest = toy.run()["run_id"]
    for command in commands:
        printed = toy.llmb(*command)
        assert (printed.returncode, printed.stderr) == (0, f"llmb: the newest run is {newest}\n"), command
        assert printed.stdout == toy.llmb(command[0], newest, *command[1:]).stdout != ""
