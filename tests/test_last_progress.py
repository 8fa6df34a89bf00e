"""Runs that have not ended: users see the last known progress, and how old that knowledge is."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import wait_until

import llmb


def show(toy: Any, run_id: str) -> str:
    return str(toy.llmb("show", run_id).stdout)


def document(toy: Any, *arguments: str) -> dict[str, Any]:
    found = json.loads(toy.llmb(*arguments, "--json").stdout)
    return dict(found["runs"][0] if "runs" in found else found)


@pytest.fixture
def running(toy: Any) -> Any:
    """Return the process that follows a run whose training waits after its third step."""
    process = toy.start("run", toy.spec(framework={"gate": str(toy.gate), "gate_step": 3}))
    toy.wait_for_state("running")
    return process


def wait_for_step(toy: Any, step: int) -> str:
    [record] = toy.records
    wait_until(lambda: (document(toy, "show", record.name)["progress"] or {}).get("step") == step, f"step {step}")
    return str(record.name)


def make_older(record: Path, seconds: float) -> None:
    """Rewrite a record as if all that it contains had happened earlier."""
    file = record / "progress.json"
    progress = json.loads(file.read_text())
    file.write_text(json.dumps(progress | {"time": progress["time"] - seconds}))
    lines = [json.loads(line) for line in (record / "events.jsonl").read_text().splitlines()]
    (record / "events.jsonl").write_text(
        "".join(json.dumps(line | {"time": line["time"] - seconds}) + "\n" for line in lines)
    )


def test_a_run_that_another_process_follows_shows_its_step(toy: Any, running: Any) -> None:
    run_id = wait_for_step(toy, 3)
    text = show(toy, run_id)
    assert "train, step 3 of 5, 0.5 s/step, MFU " in text
    assert "updated" not in text
    assert "step 3 of 5" in toy.llmb("runs").stdout
    assert document(toy, "runs") == {
        key: value for key, value in document(toy, "show", run_id).items() if key != "sets"
    }
    toy.gate.touch()
    assert running.wait() == 0
    running.communicate()
    ended = document(toy, "show", run_id)
    assert (ended["state"], ended["progress"]) == ("completed", None)


@pytest.mark.slow
def test_a_run_that_no_process_follows_shows_how_old_its_step_is(toy: Any, running: Any) -> None:
    run_id = wait_for_step(toy, 3)
    running.kill()
    running.communicate()
    [record] = toy.records
    make_older(record, 3 * 3600)
    text = show(toy, run_id)
    assert "train, step 3 of 5, " in text
    assert " (3 h ago)" in text
    assert f"3 h ago; no process follows the run: `llmb attach {run_id}`" in text
    listed = toy.llmb("runs").stdout
    assert "step 3 of 5, 3 h ago" in listed
    assert "note: no process follows 1 run; `llmb attach` updates it" in listed
    updated = llmb.RunResult.from_dict(document(toy, "show", run_id)).updated
    assert updated
    assert updated.endswith("+00:00")
    toy.gate.touch()
    assert toy.llmb("attach", run_id).returncode == 0
    assert "h ago" not in show(toy, run_id)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["hung", "slow", "done"])
def test_a_run_that_hung_until_its_time_limit_is_distinguished_from_others(
    toy: Any, pass_hour: Callable[[str], None], end: str
) -> None:
    """Follow a run until step 9. Another one printed step 10 at an unknown time, or had only 9 steps."""
    pass_hour("[ -e hour ]")
    steps = 9 if end == "done" else 20
    framework = {"gate": str(toy.gate), "gate_step": 9}
    running = toy.start("run", toy.spec(framework=framework, workload={"time_limit": "1h", "steps": steps}))
    toy.wait(lambda: len(toy.records) == 1)
    run_id = wait_for_step(toy, 9)
    running.kill()
    running.communicate()
    [record] = toy.records
    make_older(record, 3000)
    work = toy.work(run_id)
    attempts = (work / "attempts").read_text()
    (work / "attempts").write_text(re.sub(r"\d{9,}", lambda start: str(int(start[0]) - 3300), attempts))
    if end == "slow":
        with (work / "logs/train.0.0.log").open("a") as log:
            log.write("toy step 10 time 0.5 loss 2.5\n")
    (work / "hour").touch()
    toy.llmb("attach", run_id)
    ended = document(toy, "show", run_id)
    failure = ended["failure"] or {"cause": "", "remedy": ""}
    if end == "hung":
        assert failure["cause"] == "hit the time limit after 9 of 20 steps; it printed no step in its last 50 min"
        assert failure["remedy"].startswith("the training may hang")
        assert (ended["state"], failure["origin"]) == ("timeout", None)
    elif end == "slow":
        assert failure["cause"] == "hit the time limit after 10 of 20 steps"
        assert failure["remedy"].startswith("raise the limit")
        assert (ended["state"], failure["origin"]) == ("timeout", "user")
    else:
        assert ended["notes"] == ["after the last of 9 steps, the job hung until its time limit"]


def test_a_waiting_run_that_no_process_follows_shows_how_old_its_state_is(toy: Any) -> None:
    run_id = toy.record()
    toy.append_event(run_id, event="queued", state="queued", time=time.time())
    [record] = toy.records
    lines = (record / "events.jsonl").read_text().splitlines()
    old = [json.dumps(json.loads(line) | {"time": time.time() - 7200}) for line in lines]
    (record / "events.jsonl").write_text("\n".join([*old, ""]))
    assert f"2 h ago; no process follows the run: `llmb attach {run_id}`" in show(toy, run_id)
    assert "updated 2 h ago" in toy.llmb("runs").stdout
    assert document(toy, "show", run_id)["progress"] is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"attempt": 0, "step": "3"}', '{"attempt": 1, "step": 3, "time": 1}'])
def test_a_damaged_or_outdated_progress_is_unknown(toy: Any, text: str) -> None:
    run_id = toy.record()
    toy.append_event(run_id, event="running", state="running")
    [record] = toy.records
    (record / "progress.json").write_text(text)
    found = document(toy, "show", run_id)
    assert (found["state"], (found["progress"] or {}).get("step")) == ("running", None)
    assert "step" not in show(toy, run_id)


@pytest.mark.slow
def test_a_time_limit_that_is_too_short_is_reported_once(toy: Any) -> None:
    spec = toy.spec(
        workload={"steps": 1000, "time_limit": "1m"},
        framework={"gate": str(toy.gate), "gate_step": 20, "end": "stop", "end_step": 60},
    )
    process = toy.start("run", spec)
    line = toy.wait_for_message(process, "time limit")
    [record] = toy.records
    begin, _, step = line.partition(f"llmb: {record.name}: the time limit comes at about step ")
    assert begin == ""
    number, _, rest = step.partition(" of 1000; ")
    assert rest == "for all steps, cancel the run and raise workload.time_limit\n"
    assert 20 < int(number) <= 20 + 120
    wait_until(lambda: (document(toy, "show", record.name)["progress"] or {}).get("limit_step"), "the record's step")
    assert f"left, time limit at about step {number}" in show(toy, record.name)
    toy.gate.touch()
    _, err = process.communicate()
    assert "time limit comes" not in err


def test_a_time_limit_that_suffices_is_not_mentioned(toy: Any) -> None:
    done = toy.llmb("run", toy.spec(workload={"steps": 60, "time_limit": "1m"}))
    assert done.returncode == 0
    assert "time limit" not in done.stderr
