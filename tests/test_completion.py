"""Completion in a shell: commands, recipes, run ids, targets, frameworks and keys of filters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from parts.deadline import DEADLINE_S
from parts.forked import run_llmb

LINES = {
    "llmb sh": ["show"],
    "llmb recipes maxtext/": ["maxtext/llama2-70b", "maxtext/llama2-tiny"],
    "llmb metrics nemo_launcher/gr": ["nemo_launcher/grok1-314b"],
    "llmb parse --framework max": ["maxtext"],
    "llmb show k": ["k3x9f-tiny", "k7abc-tiny"],
    "llmb attach k3": ["k3x9f-tiny"],
    "llmb bundle k3": ["k3x9f-tiny"],
    "llmb doctor e": ["eos"],
    "llmb run spec.toml --target e": ["eos"],
    "llmb compare {v": ["{verdict="],
    "llmb runs st": ["state="],
    "llmb show nothing": [],
}


@pytest.fixture(autouse=True)
def _names(write_target: Callable[..., None]) -> None:
    write_target("eos", scheduler="slurm")
    for run_id in ("k3x9f-tiny", "k7abc-tiny"):
        Path(os.environ["LLMB_HOME"], "runs", run_id).mkdir(parents=True)


@pytest.mark.parametrize("line", LINES)
def test_a_value_is_completed(line: str) -> None:
    request = {"_LLMB_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    assert run_llmb([], env={**os.environ, **request}).stdout.split() == LINES[line]


def test_a_targets_file_that_is_damaged_completes_nothing() -> None:
    Path(os.environ["XDG_CONFIG_HOME"], "llmb/targets.toml").write_text("[")
    request = {"_LLMB_COMPLETE": "complete_bash", "COMP_WORDS": "llmb doctor e", "COMP_CWORD": "2"}
    done = run_llmb([], env={**os.environ, **request})
    assert (done.stdout.split(), done.stderr) == ([], "")


def test_an_unwritable_home_is_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.touch()
    done = subprocess.run(
        ["bash", "-c", '"$0" -m llmb --install-completion; exit $?', sys.executable],
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    advice = "`llmb --show-completion` prints the completion"
    assert (done.returncode, done.stderr) == (2, f"llmb: cannot write {home}: File exists; {advice}\n")


def test_bash_completes_with_the_script_that_llmb_prints() -> None:
    script = (
        'eval "$(llmb --show-completion bash 2>/dev/null || _LLMB_COMPLETE=source_bash llmb)"\n'
        "COMP_WORDS=(llmb show k3) COMP_CWORD=2\n"
        '"$(complete -p llmb | sed "s/.*-F \\([^ ]*\\).*/\\1/")" llmb\n'
        'echo "${COMPREPLY[@]}"'
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.stdout.split() == ["k3x9f-tiny"], done.stderr
