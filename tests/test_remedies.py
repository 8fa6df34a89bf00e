"""Remedies contain commands that users can paste: they are valid bash, and those of llmb exist."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import llmb
from llmb.cli.app import COMMANDS

ROOT = Path(__file__).parents[1]
SOURCES = [ROOT / "core/src", *ROOT.glob("plugins/*/src")]
COMMAND = re.compile(r"`([^`]+)`")


def remedies_of_data(value: Any) -> Iterator[str]:
    """Yield each value of a key ``remedy``."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from [each] if key == "remedy" else remedies_of_data(each)
    elif isinstance(value, list):
        for each in value:
            yield from remedies_of_data(each)


def texts_of_code(file: Path) -> Iterator[str]:
    """Yield each string literal, with `x` instead of each value."""
    tree = ast.parse(file.read_text())
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (inside | docstrings):
            yield node.value


def commands() -> Iterator[str]:
    for source in SOURCES:
        for file in source.rglob("*.toml"):
            for remedy in remedies_of_data(tomllib.loads(file.read_text())):
                yield from COMMAND.findall(remedy)
        for file in source.rglob("*.py"):
            for text in texts_of_code(file):
                yield from (each for each in COMMAND.findall(text) if each.startswith(("llmb ", "sudo ", "export ")))


FOUND = sorted(set(commands()))


def test_there_are_commands() -> None:
    assert "llmb attach x" in FOUND
    assert "sudo systemctl start nvidia-fabricmanager" in FOUND


@pytest.mark.parametrize("command", FOUND)
def test_a_command_is_valid_bash(command: str) -> None:
    done = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", [each for each in FOUND if each.startswith("llmb ")])
def test_a_command_of_llmb_exists(command: str) -> None:
    name = command.split()[1]
    assert name in {"--help", "--version", "help", *(each.__name__ for each in COMMANDS)}


@pytest.mark.parametrize("command", [each for each in FOUND if each.startswith("llmb run SPEC --set ")])
def test_a_setting_of_a_remedy_is_valid(command: str) -> None:
    words = shlex.split(command)
    overrides = [words[index + 1] for index, word in enumerate(words) if word == "--set"]
    assert llmb.load(ROOT / "examples/llama3.1-70b-nemo.toml", overrides=overrides).runs
