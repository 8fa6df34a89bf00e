"""Remedies contain commands that users can paste: they are valid bash, and those of llmb exist."""

from __future__ import annotations

import ast
import functools
import gzip
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from parts.command_line import command_line
from parts.deadline import DEADLINE_S

import llmb
from llmb.cli.app import COMMANDS
from llmb.values.causes import CAUSES

ROOT = Path(__file__).parents[1]
PRODUCT = (ROOT / "core/src", *ROOT.glob("plugins/*/src"))
SOURCES = (*PRODUCT, *ROOT.glob("examples/plugins/*/src"))
TEMPLATES = ROOT / "core/src/llmb/plugin_templates"
DOCUMENTED = ast.FunctionDef | ast.ClassDef | ast.Module
COMMAND = re.compile(r"`([^`]+)`")
SPEC_LINE = re.compile(r"\w+ = .+")
"""A line of a spec, such as `segment = false`."""

ESCAPED = re.compile(r"\\`([^`]+)\\`")
"""The same as `COMMAND` in a string of bash."""


def remedies_of_data(value: Any) -> Iterator[str]:
    """Yield each value of a key ``remedy``."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from [each] if key == "remedy" else remedies_of_data(each)
    elif isinstance(value, list):
        for each in value:
            yield from remedies_of_data(each)


def texts_of_code(file: Path) -> Iterator[str]:
    """Yield each string literal except docstrings of code, with `x` instead of each value."""
    code = file.read_text()
    waiting: list[ast.AST] = [ast.parse(code)] if "`" in code else []
    for node in waiting:  # the list grows meanwhile
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
            waiting += [part for part in node.values if not isinstance(part, ast.Constant)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        else:
            documented = isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None
            waiting += [each for each in ast.iter_child_nodes(node) if not (documented and each is node.body[0])]


@functools.cache
def commands(sources: Sequence[Path] = SOURCES) -> Sequence[str]:
    """Return the commands in all remedies, without lines of a spec."""
    return sorted(set(find_commands(sources)))


def find_commands(sources: Sequence[Path]) -> Iterator[str]:
    for _, remedy in remedies_of_files(sources):
        yield from (each for each in COMMAND.findall(remedy) if not SPEC_LINE.fullmatch(each))
    yield from (each for each in quoted_in_code(sources) if each.startswith(("llmb ", "sudo ", "export ")))


def remedies_of_files(sources: Sequence[Path] = SOURCES) -> Iterator[tuple[str, str]]:
    """Yield each remedy in a TOML file, with the name of the file, except the examples in the templates of plugins."""
    for source in sources:
        for file in source.rglob("*.toml"):
            if not file.is_relative_to(TEMPLATES):
                for remedy in remedies_of_data(tomllib.loads(file.read_text())):
                    yield file.name, remedy


@functools.cache
def quoted_in_code(sources: Sequence[Path] = SOURCES) -> Sequence[str]:
    """Return what is between backquotes in strings of Python and of bash."""
    found: list[str] = []
    for source in sources:
        for file in source.rglob("*.py"):
            for text in texts_of_code(file):
                found += COMMAND.findall(text)
        for file in source.rglob("*.sh"):
            found += (each.replace('\\"', '"') for each in ESCAPED.findall(file.read_text()))
    return found


def test_there_are_commands() -> None:
    assert "llmb attach x" in commands()
    assert "sudo systemctl start nvidia-fabricmanager" in commands()


def test_every_remedy_of_a_failure_has_something_to_paste() -> None:
    assert [(file, remedy) for file, remedy in remedies_of_files() if not COMMAND.search(remedy)] == []
    assert [cause for cause, entry in CAUSES.items() if not COMMAND.search(entry.remedy)] == []


def test_the_command_of_a_remedy_searches_the_parsed_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_llmb = command_line(capsys)
    log, packed = tmp_path / "it's one.log", tmp_path / "one.log.gz"
    log.write_text("ERROR: no data\nsrun: error: node07: task 3: Exited with exit code 2\n")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    plain, compressed = (
        run_llmb("parse", path, "--framework", "maxtext", "--json").json["failure"]["remedy"] for path in (log, packed)
    )
    [command] = COMMAND.findall(plain)
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert "ERROR: no data" in shown.stdout
    assert " LOGS " in compressed


def test_the_command_of_a_remedy_can_name_a_log_that_begins_with_a_hyphen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-x.log").write_text("srun: error: node07: task 3: Exited with exit code 2\n")
    failure = command_line(capsys)("parse", "--framework", "maxtext", "--json", "--", "-x.log").json["failure"]
    assert " ./-x.log " in failure["remedy"]


def test_the_command_of_a_remedy_does_not_wait_for_standard_input(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("srun: error: node07: task 3: Exited with exit code 2\n")
    words = [sys.executable, "-m", "llmb", "parse", "-", "--framework", "maxtext"]
    with log.open() as file:
        parsed = subprocess.run(words, stdin=file, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert " LOGS " in parsed.stdout + parsed.stderr


def test_lines_of_a_spec_are_valid() -> None:
    lines = {line for line in quoted_in_code() if SPEC_LINE.fullmatch(line)}
    assert {"segment = false", "shared = true", 'workdir = "/path/to/folder"', 'runtime = "$other"'} <= lines
    for line in lines:
        assert len(tomllib.loads(line.replace("= x", "= 1"))) == 1, line


def test_commands_are_valid_bash() -> None:
    def complain(command: str) -> str:
        bash = ["bash", "-n"]
        return subprocess.run(
            bash, input=command, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        ).stderr

    assert {command: complaint for command in commands() if (complaint := complain(command))} == {}


def test_commands_of_llmb_exist() -> None:
    names = {"--help", "--version", "help", *(each.__name__ for each in COMMANDS)}
    used = [each for each in commands() if each.startswith("llmb ")]
    assert [each for each in used if each.split()[1] not in names] == []


def test_settings_of_remedies_are_valid() -> None:
    for command in (each for each in commands(PRODUCT) if each.startswith("llmb run SPEC --set ")):
        words = shlex.split(command)
        overrides = [words[index + 1] for index, word in enumerate(words) if word == "--set"]
        assert llmb.load(ROOT / "examples/llama3.1-70b-nemo.toml", overrides=overrides).runs
