"""The commands that Typer creates for a command line."""

from __future__ import annotations

from typing import Any

import pytest

from llmb.cli import app
from llmb.cli.help_screens import GROUPS, Command


def test_only_the_called_command_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[str] = []

    class Noted(Command):
        def __init__(self, name: str, **others: Any) -> None:
            created.append(name)
            super().__init__(name, **others)

    monkeypatch.setattr(app, "_app_for", app._app_for.__wrapped__)  # earlier tests may have called the command
    for each in app.app.registered_commands:
        monkeypatch.setattr(each, "cls", Noted)
    assert app.execute(["--quiet", "runs"]) == 0
    assert created == ["runs"]


def test_the_help_of_llmb_lists_all_commands_also_before_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.execute(["--help", "runs"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")}
    assert {name for names in GROUPS.values() for name in names} <= listed


def test_an_empty_argument_is_no_path_of_the_current_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.execute(["parse", ""]) == 2  # llmb parse "$LOG" in a shell without LOG
    assert capsys.readouterr().err == (
        "llmb: the argument after parse is empty; probably a variable of the shell is not set\n"
    )
