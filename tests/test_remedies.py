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
from llmb.cli.app import app
from llmb.logs.failures.commands_in_remedies import (
    FIRST_ERRORS,
    LAST_MESSAGES,
    SEE_TRACEBACK,
    SEE_TRACEBACK_OF_ONE_LOG,
    with_commands,
)
from llmb.logs.failures.signature_files import known_failure
from llmb.values.causes import CAUSES

ROOT = Path(__file__).parents[1]
PRODUCT = (ROOT / "core/src", *ROOT.glob("plugins/*/src"))
SOURCES = (*PRODUCT, *ROOT.glob("examples/plugins/*/src"))
TEMPLATES = ROOT / "core/src/llmb/plugin_templates"
DOCUMENTED = ast.FunctionDef | ast.ClassDef | ast.Module
COMMAND = re.compile(r"`([^`]+)`")
RANKS = 2048
SCREEN = 45
"""Lines of a large terminal."""

pytestmark = pytest.mark.xdist_group("remedies")  # all files are read once, which takes seconds

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
            docstring = None
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
                docstring = node.body[0]
            waiting += [each for each in ast.iter_child_nodes(node) if each is not docstring]


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
                    yield file.name, with_commands(remedy)


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


@pytest.mark.slow
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


@pytest.fixture(scope="module")
def many_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a log per rank. Rank 1700 fails first, and the traceback of rank 3 has no time."""
    folder = tmp_path_factory.mktemp("many ranks")
    frames = '  File "train.py", line 7, in main\n' * 60
    for rank in range(RANKS):
        second, message = (1, "ERROR: Xid 79") if rank == 1700 else (30 + rank % 20, "error: timeout")
        lines = [f"slurmstepd: error: pyxis: line {number}" for number in range(5)] if rank >= 2000 else []
        lines += [f"[2026-05-04 10:00:{second:02},250 rank{rank}] {message} {'x' * 2000}"] * 3
        if rank % 1000 == 3:
            lines = ["Traceback (most recent call last):", frames + f"ValueError: {rank}", *lines]
        folder.joinpath(f"rank{rank}.log").write_text("\n".join(lines) + "\n")
    return folder


def shown_by(command: str, logs: Path) -> list[str]:
    """Return the lines that a command of a remedy prints, if a user pastes it. It prints no errors."""
    command = command.replace(" LOGS", f" {shlex.quote(str(logs))}")
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.slow
def test_commands_print_one_screen_of_the_logs_of_thousands_of_ranks(many_ranks: Path) -> None:
    searches = {each for each in (*find_commands(PRODUCT), *quoted_in_code(PRODUCT)) if " LOGS " in each}
    searches -= {*COMMAND.findall(SEE_TRACEBACK_OF_ONE_LOG)}
    assert len(searches) == 5, "first errors, last messages, first traceback, messages of pyxis, and `llmb parse LOGS`"
    for command in searches - {"llmb parse LOGS --framework FRAMEWORK"}:
        shown = shown_by(command, many_ranks)
        assert 0 < len(shown) <= SCREEN, command
        assert max(map(len, shown)) <= 300, command


@pytest.mark.slow
def test_the_earliest_error_of_thousands_of_ranks_is_first(many_ranks: Path) -> None:
    [command] = COMMAND.findall(FIRST_ERRORS)
    assert "rank1700.log" in shown_by(command, many_ranks)[0]
    assert "Xid 79" in shown_by(command, many_ranks)[0]


def test_errors_without_a_time_are_in_the_order_of_the_logs(tmp_path: Path) -> None:
    for rank in (10, 9, 100):
        tmp_path.joinpath(f"rank{rank}.log").write_text("start\nValueError: 1\nRuntimeError: 2\n")
    tmp_path.joinpath("rank200.log").write_text("10:00:01 ERROR\n")
    [command] = COMMAND.findall(FIRST_ERRORS)
    found = [re.findall(r"rank(\d+)\.log:(\d)", line)[0] for line in shown_by(command, tmp_path)]
    assert found == [("200", "1"), ("9", "2"), ("9", "3"), ("10", "2"), ("10", "3"), ("100", "2"), ("100", "3")]


def test_the_last_messages_of_a_few_ranks_are_before_those_of_all(tmp_path: Path) -> None:
    for rank in range(RANKS):
        lines = ["no data", "giving up"] if rank == 1700 else ["waiting"]
        tmp_path.joinpath(f"rank{rank}.log").write_text("".join(f"10:00:{rank % 60}: {line}\n" for line in lines))
    [command] = COMMAND.findall(LAST_MESSAGES)
    *few, all_others = shown_by(command, tmp_path)
    assert few == ["1 10:00:20: no data", "1 10:00:20: giving up"]
    assert all_others.startswith(f"{RANKS - 1} ")


def test_the_first_traceback_of_thousands_of_ranks_is_printed(many_ranks: Path) -> None:
    [command] = COMMAND.findall(SEE_TRACEBACK)
    assert all("rank3.log" in line for line in shown_by(command, many_ranks))


def test_the_traceback_of_the_only_log_is_found_without_a_search_for_the_log(tmp_path: Path) -> None:
    logs = [tmp_path / "rank 0.log", tmp_path / "rank 1.log"]
    for log in logs:
        log.write_text('start\nTraceback (most recent call last):\n  File "a.py", line 3, in <module>\nKeyError: 7\n')
    one, several = llmb.parse(logs[:1], framework="maxtext").failure, llmb.parse(logs, framework="maxtext").failure
    assert one
    assert several
    [command] = COMMAND.findall(one.remedy)
    assert shown_by(command, logs[0])[0] == "2:Traceback (most recent call last):"
    logs[1].unlink()
    in_folder = shown_by(command.replace(shlex.quote(str(logs[0])), "LOGS"), tmp_path)  # that of a record
    assert in_folder[0].endswith("rank 0.log:2:Traceback (most recent call last):")
    assert "find" not in command
    assert "the first log that has one" in several.remedy


def test_a_command_names_the_folder_that_contains_the_logs_of_many_folders(tmp_path: Path) -> None:
    for rank in range(9):
        folder = tmp_path / f"attempt_0/{rank}"
        folder.mkdir(parents=True)
        folder.joinpath("stderr.log").write_text("srun: error: node07: task 3: Exited with exit code 2\n")
    logs = sorted(tmp_path.rglob("*.log"))
    failure = llmb.parse(logs, framework="maxtext").failure
    assert failure
    assert f" {tmp_path}/attempt_0 -type f" in failure.remedy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "file", "message"),
    [
        (
            "llmb_local",
            "signatures.toml",
            "dial tcp: lookup reg.example on 10.0.0.2:53: no such host (log: a)",
        ),
        ("llmb_slurm", "signatures.toml", "[ERROR] curl: (6) Could not resolve host: reg.example"),
    ],
)
def test_the_remedy_of_a_failed_import_names_the_host(package: str, file: str, message: str) -> None:
    failure = known_failure(message, llmb.read_signatures(package, file))
    assert failure
    assert "`getent hosts reg.example`" in failure.remedy


def test_a_message_that_does_not_match_the_pattern_of_a_signature_has_no_remedy() -> None:
    signatures = llmb.read_signatures("llmb_slurm", "signatures.toml")
    assert known_failure("bash: line 7: /lustre/cache/done: Permission denied", signatures) is None
    mount = known_failure("enroot-mount: failed to mount: /home/me at /data: Permission denied", signatures)
    assert mount
    assert "namei -l" in mount.remedy


def test_lines_of_a_spec_are_valid() -> None:
    lines = {line for line in quoted_in_code() if SPEC_LINE.fullmatch(line)}
    assert {"segment = false", "shared = true", 'workdir = "/path/to/folder"', 'runtime = "$other"'} <= lines
    for line in lines:
        assert len(tomllib.loads(line.replace("= x", "= 1"))) == 1, line


@pytest.mark.slow
def test_commands_are_valid_bash() -> None:
    def complain(command: str) -> str:
        bash = ["bash", "-n"]
        return subprocess.run(
            bash, input=command, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        ).stderr

    assert {command: complaint for command in commands() if (complaint := complain(command))} == {}


@pytest.mark.slow
def test_commands_of_llmb_exist() -> None:
    names = {
        "--help",
        "--version",
        "--show-completion",
        *(each.name or each.callback.__name__ for each in app.registered_commands),
    }
    used = [each for each in commands() if each.startswith("llmb ")]
    assert [each for each in used if each.split()[1] not in names] == []


@pytest.mark.slow
def test_settings_of_remedies_are_valid() -> None:
    """LONGER is a duration and SHORTER a number that llmb computes. The user chooses LIMIT, a duration, and SIZE."""
    for command in (each for each in commands(PRODUCT) if each.startswith("llmb run SPEC --set ")):
        words = shlex.split(
            re.sub("=(LONGER|LIMIT)", "=2h", command).replace("=SHORTER", "=4096").replace("=SIZE", "=900G")
        )
        overrides = [words[index + 1] for index, word in enumerate(words) if word == "--set"]
        assert llmb.load(ROOT / "examples/llama3.1-70b-nemo.toml", overrides=overrides).runs
