"""Every pair of options of every command: both have an effect, or the pair is rejected, or llmb prints a note."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
import typer.main
from parts.command_line import command_line

from llmb.cli.app import app

LOG = str(Path(__file__).parents[1] / "plugins/maxtext/tests/logs/maxtext-0.2.5-cpu.log")

ARGUMENTS = {
    "run": ["missing.toml"],
    "validate": ["missing.toml"],
    "attach": ["missing"],
    "cancel": ["missing"],
    "show": ["missing"],
    "logs": ["missing"],
    "compare": ["missing", "baseline"],
    "doctor": ["missing.toml"],
    "parse": [LOG, "--recipe", "maxtext/llama2-70b"],
    "grade": ["missing.log"],
    "recipes": ["maxtext/llama2-tiny"],
    "metrics": ["maxtext/llama2-70b"],
    "new-plugin": ["no-name"],
}
"""Arguments with which a command reads its options and starts nothing."""

VALUES = {
    "--framework": "maxtext",
    "--kind": "declared",
    "--recipe": "maxtext/llama2-70b",
    "--gpu-type": "h100",
    "--dtype": "bf16",
    "--gpus": "64",
    "--set": "workload.steps=3",
    "--target": "missing",
    "--window": "1:3",
    "-o": "/dev/null",
}
"""Values of options. Those of other options are numbers."""

RECIPE_FILTERS = ("--framework", "--gpu-type", "--dtype", "--gpus", "--with-baseline")

REJECTED = {
    "run": [{"--check", "--detach"}, {"--detach", "--dry-run"}],
    "runs": [{"--all", "--limit"}, *map(set, combinations(("--csv", "--ids", "--json", "--prometheus"), 2))],
    "show": [{"--csv", "--json"}],
    "parse": [{"--csv", "--json"}],
    "recipes": [
        {"--json", "--toml"},
        {"--schema", "--json"},
        *map(set, product(RECIPE_FILTERS, ("--toml", "--schema"))),
    ],
    "schema": [*map(set, combinations(("--targets-file", "--recipe", "--framework-file"), 2))],
}
"""The pairs of which one option would be ignored."""

NOTED = {"parse": [{"--full-names"}, {"--csv", "--steps"}, {"--csv", "--window"}]}
"""The options that have no effect on a single log."""


def pairs() -> list[tuple[str, str, str]]:
    """Return each command with each pair of its options."""
    commands: Any = typer.main.get_command(app)
    return [
        (name, *sorted((first.opts[-1], second.opts[-1])))
        for name, command in commands.commands.items()
        for first, second in combinations([each for each in command.params if each.opts[0].startswith("-")], 2)
        if "--help" not in (*first.opts, *second.opts)
    ]


def words(name: str, options: set[str]) -> list[str]:
    """Return a command line with these options, and with those that the command requires."""
    commands: Any = typer.main.get_command(app)
    found = [name, *ARGUMENTS.get(name, [])]
    for each in commands.commands[name].params:
        if each.opts[-1] in options or (each.required and each.opts[0].startswith("-")):
            found += [each.opts[-1]] if each.is_flag else [each.opts[-1], VALUES.get(each.opts[-1], "1")]
    return found


@pytest.mark.parametrize(("name", "first", "second"), pairs())
@pytest.mark.filterwarnings("ignore")
def test_no_option_is_silently_ignored(name: str, first: str, second: str, capsys: pytest.CaptureFixture[str]) -> None:
    pair = {first, second}
    answer = command_line(capsys)(*words(name, pair))
    rejected = f"{first} and {second} cannot be combined" in answer.out + answer.err
    rejected |= f"{second} and {first} cannot be combined" in answer.out + answer.err
    assert rejected == (pair in REJECTED.get(name, []))
    assert rejected or ("has no effect" in answer.err) == any(each <= pair for each in NOTED.get(name, []))


def test_the_tolerance_of_a_check_requires_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    for value in ("nan", "inf", "2"):
        answer = command_line(capsys)("compare", "a", "baseline", "--check", "--tolerance", value)
        expected = f"llmb: --tolerance: {value} is out of range; expected a fraction such as 0.02"
        assert (answer.status, answer.err.partition("; see")[0]) == (2, expected)
    answer = command_line(capsys)("compare", "a", "baseline", "--tolerance", "0.1")
    assert (answer.status, answer.err) == (2, "llmb: --tolerance requires --check; see `llmb compare --help`\n")
