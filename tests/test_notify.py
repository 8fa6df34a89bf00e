"""The command of the user that runs when a run ends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts.deadline import wait_until

import llmb


def configure(command: object) -> None:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "llmb"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(tomli_w.dumps({"notify": {"command": command}}))


def notes(session: llmb.Session) -> list[str]:
    return [event.text for event in session if isinstance(event, llmb.Note)]


def test_the_command_gets_the_result_as_json_once(toy: Any, tmp_path: Path) -> None:
    file = tmp_path / "ended.json"
    configure(["bash", "-c", f"cat >>{file}"])
    session = llmb.start(llmb.load(toy.spec("one")))
    assert notes(session) == []
    assert json.loads(file.read_text()) == json.loads(json.dumps(session.results[0].as_dict()))
    assert session.results[0].state == "completed"
    llmb.attach(session.run_ids).wait()  # it has ended already
    assert file.read_text().count('"run_id"') == 1


@pytest.mark.parametrize(
    ("command", "ok", "detail"),
    [
        (["bash", "-c", "true"], True, "a run that ends starts bash"),
        (["no-such-program-here"], False, "no-such-program-here is not a command of this machine"),
        ("mail me", False, "notify.command: invalid value; expected a list of words"),
    ],
)
def test_doctor_reports_a_command_that_could_not_start(toy: Any, command: object, ok: bool, detail: str) -> None:
    configure(command)
    [check] = [each for each in llmb.doctor(workload=llmb.load(toy.spec("one"))) if each.name == "settings"]
    assert (check.ok, detail in check.detail) == (ok, True)


def test_commands_that_ended_leave_no_zombies_while_a_sweep_continues(toy: Any) -> None:
    configure(["true"])
    sweep = toy.spec("three", sweep={"env.LEVEL": ["a", "b", "c"]})
    states = []
    for event in llmb.start(llmb.load(sweep, overrides="target.max_jobs=1")):
        if isinstance(event, llmb.Ended):
            wait_until(lambda: set(states_of("true")) == {"Z"})
            states.append(states_of("true"))
    assert states == [["Z"]] * 3


def states_of(program: str) -> list[str]:
    """Return the states of the processes that this process started with this program: Z for a zombie."""
    children = [child for file in Path("/proc/self/task").glob("*/children") for child in file.read_text().split()]
    stats = [Path(f"/proc/{child}/stat").read_text() for child in children]
    return [stat.partition(") ")[2][0] for stat in stats if f"({program})" in stat]


def test_a_file_that_becomes_invalid_is_reported_once_for_all_runs(toy: Any) -> None:
    session = llmb.start(llmb.load(toy.spec("two", sweep={"env.LEVEL": ["a", "b"]})))
    configure("mail me")
    [found] = notes(session)
    assert "notify.command" in found


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (
            {"notify": {"comand": ["true"]}},
            "notify.comand: unknown key; expected one of command (did you mean 'command'?)",
        ),
        ({"notfy": {"command": ["true"]}}, "notfy: unknown key; expected one of notify (did you mean 'notify'?)"),
        ({"notify": {"command": "mail me"}}, "notify.command: invalid value; expected a list of words such as"),
        ({"notify": {"command": ["no\0program"]}}, "notify.command: invalid value; expected a list of words such as"),
    ],
)
def test_invalid_settings_are_an_error_before_a_run_is_recorded(toy: Any, settings: Any, error: str) -> None:
    configure([])
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "llmb" / "config.toml"
    file.write_text(tomli_w.dumps(settings))
    answer = toy.llmb("run", toy.spec("one"))
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[-1].startswith(f"llmb: {file}: {error}")
    assert not (toy.home / "runs").exists() or not os.listdir(toy.home / "runs")


@pytest.mark.parametrize(
    ("command", "note"),
    [
        (["no-such-program-here"], "the notify command did not run: [Errno 2] No such file"),
        (["bash", "-c", "exit 3"], "the notify command of "),
    ],
)
def test_a_failing_command_is_a_note_and_does_not_affect_the_run(toy: Any, command: object, note: str) -> None:
    configure(command)
    session = llmb.start(llmb.load(toy.spec("one")))
    [found] = notes(session)
    assert note in found
    assert session.results[0].state == "completed"
