"""Conventions of command lines: versions, quiet and verbose output, tracebacks, and help on topics."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import DEADLINE_S
from parts.forked import run_llmb

import llmb
from llmb.cli import output
from llmb.hosts.command_log import log_command


def test_the_version_names_the_plugins() -> None:
    first, *plugins = run_llmb(["--version"]).stdout.splitlines()
    assert first == f"llmb {llmb.VERSION}"
    assert {"llmb-local", "llmb-slurm", "llmb-maxtext"} <= {line.split()[0] for line in plugins}


@pytest.mark.parametrize("before", [True, False])
def test_quiet_prints_only_results_and_errors(toy: Any, before: bool) -> None:
    command = ["run", toy.spec(framework={"task": "data"})]
    done = toy.llmb("--quiet", *command) if before else toy.llmb(*command, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert " completed" in done.stdout


def test_quiet_prints_errors(toy: Any) -> None:
    assert "unknown key" in toy.llmb("run", toy.spec(workload={"stepz": 3}), "--quiet").stderr


def test_verbose_prints_the_commands_that_run_on_the_host(toy: Any) -> None:
    done = toy.llmb("run", toy.spec(), "--verbose")
    [record] = toy.records
    assert done.returncode == 0
    assert "this machine runs" in done.stderr
    assert f"  poll {record.name} " in done.stderr


def test_verbose_masks_secrets(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SITE_API_KEY", "correct horse")
    output.print_host_commands()
    log_command("eos", "curl -H 'X: correct horse' hf_abcdefghijklmnopqrstuvwxyz\nexit")
    assert capsys.readouterr().err == f"eos runs:\n  curl -H 'X: {'*' * 13}' {'*' * 29}\n  exit\n"


def test_quiet_and_verbose_exclude_each_other() -> None:
    done = run_llmb(["recipes", "--quiet", "--verbose"])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("llmb: --quiet and --verbose cannot be combined")


def test_an_error_has_a_traceback_only_if_the_user_wants_one(toy: Any) -> None:
    spec = toy.spec(workload={"stepz": 3})
    assert "Traceback" not in toy.llmb("validate", spec).stderr
    shown = toy.llmb("validate", spec, env={"LLMB_DEBUG": "1"})
    assert shown.stderr.startswith("Traceback (most recent call last):\n")
    assert shown.stderr.splitlines()[-1].startswith(f"llmb: {spec}: workload.stepz: unknown key")
    assert shown.returncode == 2


def test_the_spec_in_the_help_is_valid() -> None:
    text = run_llmb(["help", "spec"]).stdout.partition("file\n\n")[2]
    text = "\n".join(takewhile(lambda line: not line or line.startswith(" "), text.splitlines()))
    assert len(llmb.loads(textwrap.dedent(text)).runs) == 12


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("exit-code", "exit-codes"),
        ("exit-status", "exit-codes"),
        ("targts", "targets"),
        ("status", "runs"),
        ("zz", None),
    ],
)
def test_an_unknown_topic_names_the_nearest_one(word: str, nearest: str | None) -> None:
    done = run_llmb(["help", word])
    assert (done.returncode, done.stdout) == (2, "")
    suggestion = f" (did you mean {nearest!r}?)" if nearest else ""
    assert done.stderr == f"llmb: there is no topic or command {word!r}; `llmb help` lists the topics{suggestion}\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_ends_a_command_with_one_line(as_json: bool) -> None:
    command = [sys.executable, "-m", "llmb", "parse", "-", "--framework", "maxtext", *(["--json"] if as_json else [])]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as parsing:
        assert parsing.stdin
        parsing.stdin.write("no step\n" * 20_000)  # more than a pipe holds: llmb has begun to read
        parsing.send_signal(signal.SIGINT)
        out, err = parsing.communicate(timeout=DEADLINE_S)
    assert parsing.returncode == 130
    if as_json:
        assert [each["message"] for each in json.loads(out)["errors"]] == ["interrupted"]
    else:
        assert (out, err) == ("", "llmb: interrupted\n")


def test_ctrl_c_during_the_start_prints_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "llmb", "runs"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "llmb: interrupted\n")
