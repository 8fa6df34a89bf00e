"""The attempts of jobs, and who cancelled them, from what sacct prints."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

from llmb import Attempt, JobHandle, JobHistory
from llmb.hosts.local_host import LocalHost
from llmb_slurm.plugin import Slurm

PREEMPTED = "96|a|PREEMPTED|1763689697|1763689698|node1|scav|low"
AGAIN = "96|a|COMPLETED|1763689711|1763689800|node2|scav|low"


def history(folder: Path, monkeypatch: pytest.MonkeyPatch, *sacct: str) -> JobHistory:
    """Return the history of job 96 if sacct runs these lines of bash."""
    folder.mkdir(exist_ok=True)
    for name, text in (("sacct", "\n".join(sacct)), ("scontrol", 'printf "%s\\n" $3')):
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Slurm().history([JobHandle(id="a", directory=str(folder), job_id="96")], LocalHost())["a"]


def test_each_start_is_an_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = history(tmp_path, monkeypatch, f"echo '{PREEMPTED}'", f"echo '{AGAIN}'")
    assert found.attempts == (
        Attempt(attempt=0, start=1763689697.0, end=1763689698.0, nodes=("node1",), cause="preempted"),
        Attempt(attempt=1, start=1763689711.0, end=1763689800.0, nodes=("node2",), cause="completed"),
    )


@pytest.mark.parametrize(
    ("printed", "suspended_s"), [("00:00:00", 0.0), ("00:01:05", 65.0), ("1-00:00:01", 86401.0), ("", None)]
)
def test_an_attempt_has_the_time_for_which_it_was_suspended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, suspended_s: float | None
) -> None:
    [attempt] = history(tmp_path, monkeypatch, f"echo '{AGAIN}|{printed}|/w/runs/a'").attempts
    assert attempt.suspended_s == suspended_s


def test_a_renamed_job_has_its_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = AGAIN.replace("|a|", "|renamed|")
    found = history(tmp_path, monkeypatch, f"echo '{row}|00:00:00|/another/path/to/{tmp_path.name}'")
    assert (found.pending, [each.start for each in found.attempts]) == (False, [1763689711.0])
    assert history(tmp_path, monkeypatch, f"echo '{row}|00:00:00|/w/runs/b'") == JobHistory(pending=True)


def followers(folder: Path, monkeypatch: pytest.MonkeyPatch, *others: str, first: str = PREEMPTED) -> list[str]:
    """Return the jobs that followed the attempts of job 96 if sacct prints these rows for jobs of all users."""
    rows = "\n".join(others)
    found = history(folder, monkeypatch, f"case $* in *-a*) echo '{rows}'; exit ;; esac; echo '{first}\n{AGAIN}'")
    return [each.followed_by for each in found.attempts]


def test_the_first_job_on_the_nodes_of_a_preempted_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = PREEMPTED.replace("node1", "node1 node2 node3")
    others = [
        "96|me|scav|low|1763689711|node2",  # the next attempt of the job itself
        "97|eve|scav|low|1763689698|node1",  # no higher partition or QOS
        "98|bob|batch|low|1763689690|node1",  # started before
        "99|bob|batch|low|1763689700|node8 node9",
        "100|carl||Unknown|1763689699|node1",  # not complete in accounting yet
        "103|dan|batch|low|1763689701|node1",
        "102|alice|urgent|low|1763689700|node2 node3 node4",
        "101|alice|batch|high|Unknown|node1",
    ]
    assert followers(tmp_path, monkeypatch, *others, first=wide) == ["job 102 of alice (urgent) on node[2-3]", ""]
    [alone] = (each for each in others if each.startswith("103"))
    assert followers(tmp_path, monkeypatch, alone.replace("batch|low", "scav|high")) == [
        "job 103 of dan (scav) on node1",
        "",
    ]


@pytest.mark.parametrize("other", ["", "97|bob|urgent|low|1763689759|node1", "sacct: error: no rights"])
def test_a_preempted_job_without_a_known_follower_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    assert followers(tmp_path, monkeypatch, other) == ["", ""]


def test_jobs_of_others_are_queried_once_and_only_after_a_preemption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = f'echo "$*" >>{tmp_path}/calls'
    history(tmp_path, monkeypatch, count, f"echo '{AGAIN}'")
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
    later = PREEMPTED.replace("17636896", "17636886").replace("node1", "node3")
    history(tmp_path, monkeypatch, count, f"echo '{later}\n{PREEMPTED}\n{AGAIN}'")
    [_, _, query] = (tmp_path / "calls").read_text().splitlines()
    assert " -N node3,node1 " in query


def test_slow_accounting_delays_the_results_of_many_preempted_jobs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query of each job would take longer than a command may, so that no run would ever get its result."""
    monkeypatch.setattr("llmb_slurm.job_history.STARTS_LIMIT_S", 5)
    rows = "\n".join(PREEMPTED.replace("96|a", f"{number}|{number}") for number in (96, 97, 98))
    slow = f"case $* in *-a*) echo slow >>{tmp_path}/calls; exec sleep 1000 ;; esac; echo '{rows}'"
    history(tmp_path, monkeypatch, slow)
    handles = [JobHandle(id=str(number), directory=str(tmp_path), job_id=str(number)) for number in (96, 97, 98)]
    found = Slurm().history(handles, LocalHost())
    assert [each.attempts[0].cause for each in found.values()] == ["preempted"] * 3
    assert (tmp_path / "calls").read_text().split() == ["slow"]


def test_a_start_that_never_had_nodes_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = "96|a|COMPLETED|1763689711|1763689711|None assigned|scav|low"
    assert [each.nodes for each in history(tmp_path, monkeypatch, f"echo '{row}'").attempts] == [()]


def test_an_earlier_job_with_the_same_number_is_another_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = history(tmp_path, monkeypatch, "echo '96|other|COMPLETED|1|2|node1|scav|low'", f"echo '{AGAIN}'")
    assert [each.start for each in found.attempts] == [1763689711.0]


def test_accounting_may_not_know_the_name_of_the_job_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = history(tmp_path, monkeypatch, f"echo '{AGAIN}'".replace("|a|", "|allocation|"))
    assert [each.start for each in found.attempts] == [1763689711.0]


def test_the_user_who_cancelled_a_job_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = f"96|a|CANCELLED by {os.getuid()}|1763689697|1763689698|node1|scav|low"
    assert history(tmp_path, monkeypatch, f"echo '{row}'").cancelled_by == getpass.getuser()


def test_a_job_that_was_cancelled_in_the_queue_has_no_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = "96|a|CANCELLED by 4294901|None|1763689698|None assigned|scav|low"
    assert history(tmp_path, monkeypatch, f"echo '{row}'") == JobHistory(cancelled_by="user 4294901")


def test_accounting_that_lags_is_queried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row, seen = "96|a|RUNNING|1763689711|Unknown|node2|scav|low", tmp_path / "seen"
    lagging = f"[ -e {seen} ] || {{ touch {seen}; echo '{row}'; exit; }}"
    found = history(tmp_path, monkeypatch, lagging, f"echo '{AGAIN}'")
    assert (found.pending, [each.end for each in found.attempts]) == (True, [None])
    found = history(tmp_path, monkeypatch, lagging, f"echo '{AGAIN}'")
    assert (found.pending, [each.end for each in found.attempts]) == (False, [1763689800.0])


@pytest.mark.parametrize(
    "output", ["", "96|other|COMPLETED|1|2|node1|scav|low", "96|a|PENDING|Unknown|Unknown|None assigned|scav|low"]
)
def test_accounting_may_not_know_the_job_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    assert history(tmp_path, monkeypatch, f"echo '{output}'") == JobHistory(pending=True)


@pytest.mark.parametrize(
    ("sacct", "note"),
    [
        ("echo 'Slurm accounting storage is disabled' >&2; exit 1", "accounting is disabled"),
        ("echo 'Connection refused' >&2; exit 1", "accounting does not respond"),
    ],
)
def test_a_note_explains_missing_accounting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sacct: str, note: str
) -> None:
    assert note in history(tmp_path, monkeypatch, sacct).note
