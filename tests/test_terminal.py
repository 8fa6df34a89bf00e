"""The command line's output on narrow and wide terminals, with and without colour, and in pipes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from parts.deadline import DEADLINE_S
from parts.forked import run_llmb
from parts.terminal import Terminal

import llmb

ROOT = Path(__file__).parents[1]
LOG = Path(os.path.relpath(ROOT / "plugins/maxtext/tests/logs/maxtext-0.2.5-cpu.log"))  # fits into 80 columns
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")

TABLES = {
    "recipes": ["recipes"],
    "points": ["recipes", "nemo_launcher/grok1-314b"],
    "points-of-two": ["recipes", "megatron_bridge/llama3.1-405b@25.12"],
    "plugins": ["plugins"],
    "steps": ["parse", str(LOG), "--framework", "maxtext"],
    "logs": ["parse", str(LOG), str(LOG), "--framework", "maxtext"],
    "metrics": [
        *("metrics", "megatron_bridge/llama3.1-405b@25.12", "--gpu-type", "gb200", "--dtype", "fp8", "--gpus", "128"),
        *("--step-time", "5.741", "--tflops-per-gpu", "1636.8"),
    ],
    "help": ["--help"],
}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "llmb", *arguments]


def on_terminal(width: int, *arguments: str, **env: str) -> str:
    """Return the output of ``llmb`` on a terminal with so many columns."""
    with Terminal(width, 40) as terminal:
        assert terminal.run_llmb(arguments, env={**os.environ, "TERM": "xterm", **env}) == 0
    return terminal.written


def numbers(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w.,])\d+(?:,\d{3})*\.\d+(?![\w.])", text))


@cache
def piped(*arguments: str) -> str:
    return run_llmb(arguments).stdout


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("width", [80, pytest.param(200, marks=pytest.mark.slow)])
def test_the_terminal_cuts_no_number_and_breaks_no_row(name: str, width: int) -> None:
    shown = ESCAPE.sub("", on_terminal(width, *TABLES[name]))
    assert numbers(shown) <= numbers(piped(*TABLES[name]))
    rows = [line for line in shown.splitlines() if " " in line]  # a word alone, such as an image, can be copied
    assert [line for line in rows if len(line) > width] == []
    assert "…" not in shown


def test_names_of_logs_are_complete_on_80_columns(tmp_path: Path) -> None:
    names = ["03-bigscience-megatron-n8-loginterval10", "33-openseek-flagscale-default0"]
    for name in names:
        (tmp_path / f"{name}.log").write_bytes(LOG.read_bytes())
    shown = ESCAPE.sub("", on_terminal(80, "parse", str(tmp_path), "--framework", "maxtext"))
    assert [line.split()[:2] for line in shown.splitlines() if "Success" in line] == [
        [name, "Success"] for name in names
    ]


def test_a_message_is_broken_between_words_and_its_commands_are_kept(tmp_path: Path) -> None:
    arguments = ("parse", str(tmp_path / "a.log"))
    (tmp_path / "a.log").write_text("nothing\n")
    with Terminal(80, 40) as terminal:
        assert terminal.run_llmb(arguments, env={**os.environ, "TERM": "xterm"}) == 2
    shown = ESCAPE.sub("", terminal.written).strip()
    first, *others = shown[shown.index("llmb: no installed framework") :].splitlines()
    assert others
    assert all(line.startswith("  ") for line in others)
    assert [" ".join([first, *map(str.strip, others)])] == run_llmb(arguments).stderr.splitlines()[-1:]
    assert any(f"`llmb new-plugin NAME --from {tmp_path}/a.log`" in line for line in others)
    assert [line for line in (first, *others) if len(line) > 80 and "`" not in line and str(tmp_path) not in line] == []


@pytest.mark.parametrize("name", TABLES)
def test_piped_output_has_no_escapes_and_no_trailing_blanks(name: str) -> None:
    lines = piped(*TABLES[name]).splitlines()
    assert [line for line in lines if "\x1b" in line or "\r" in line or line != line.rstrip()] == []


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["no-color", "dumb"])
def test_colours_can_be_turned_off(env: dict[str, str]) -> None:
    shown = on_terminal(80, "doctor", str(ROOT / "examples/quickstart.toml"), **env)
    assert "ok" in shown
    assert not re.search(r"\x1b\[(?:\d+;)*3[0-7]", shown)


def test_the_help_does_not_cut_the_line_of_any_command() -> None:
    assert "..." not in on_terminal(80, "--help").partition("Run:")[2]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["recipes", "--toml"], "llmb: --toml requires the ADDRESS of a recipe; see `llmb recipes --help`"),
        (
            ["run", "x.toml", "--dry-run", "--detach"],
            "llmb: --dry-run and --detach cannot be combined; see `llmb run --help`",
        ),
    ],
)
def test_wrong_arguments_are_one_line_that_names_the_help_to_read(arguments: list[str], line: str) -> None:
    done = run_llmb(arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")


@pytest.mark.parametrize("scheduler", ["local", "slurm"])
def test_the_starter_workload_of_every_recipe_is_valid(scheduler: str) -> None:
    addresses = llmb.recipe_addresses()
    assert len(addresses) > 10
    registry = llmb.PluginRegistry()
    for address in addresses:
        text = llmb.starter_workload(address, scheduler=scheduler)
        assert len(llmb.loads(text, registry=registry).runs) == 1


@pytest.mark.parametrize(("address", "scheduler"), [("maxtext/llama2-tiny", "local"), ("maxtext/llama2-70b", "slurm")])
def test_a_recipe_that_needs_many_nodes_is_not_offered_for_one_machine(address: str, scheduler: str) -> None:
    assert f'\nscheduler = "{scheduler}" # or ' in piped("recipes", address, "--toml")


ENDS_OF_OUTPUT = {
    "full": (2, "llmb: cannot write standard output: No space left on device\n"),
    "no reader": (141, ""),
}


@pytest.mark.parametrize("arguments", [["recipes"], ["runs", "--json"]])
@pytest.mark.parametrize("end", ENDS_OF_OUTPUT)
def test_an_unwritable_output_is_an_error_but_a_closed_pipe_is_not(end: str, arguments: list[str]) -> None:
    if end == "full":
        output = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, output = os.pipe()
        os.close(reader)
    try:
        done = subprocess.run(
            command(*arguments), stdout=output, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False
        )
    finally:
        os.close(output)
    assert (done.returncode, done.stderr) == ENDS_OF_OUTPUT[end]


def test_a_closed_output_is_an_error() -> None:
    done = subprocess.run(
        ["bash", "-c", '"$@" >&-', "bash", *command("recipes")],
        stderr=subprocess.PIPE,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "llmb: standard output is closed\n")


def test_a_closed_input_is_not_the_output() -> None:
    done = subprocess.run(
        ["bash", "-c", '"$@" <&-', "bash", *command("parse", "-", "--framework", "maxtext")],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    expected = "llmb: /dev/stdin: is a device, not a log; expected a file or a pipe\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_a_closed_standard_error_changes_no_exit_code() -> None:
    done = subprocess.run(
        ["bash", "-c", '"$@" 2>&-', "bash", *command("validate", "missing.toml")],
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    "env",
    [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "latin-1"}],
    ids=["ascii", "latin-1"],
)
def test_a_locale_that_lacks_a_character_prints_its_escape(tmp_path: Path, env: dict[str, str]) -> None:
    done = subprocess.run(
        command("doctor"),
        env={**os.environ, "LLMB_HOME": f"{tmp_path}/\u20ac", **env},
        capture_output=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert b"Traceback" not in done.stderr
    assert rb"\u" in done.stdout
