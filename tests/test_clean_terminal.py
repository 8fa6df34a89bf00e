"""Hostile text on a real terminal: specs, records, logs and arguments cannot control it."""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path

import pytest
from parts.recorded_runs import record_runs
from parts.terminal import Terminal
from rich.text import Text

import llmb
from llmb.cli import output

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\x1b(0\u202eevil\u2066\x7f\x08\x0d\x00"
IN_TOML = "".join(f"\\u{ord(each):04x}" if ord(each) < 32 or ord(each) == 127 else each for each in EVIL[:-1])
SPEC = f"""
[workload]
recipe = "maxtext/llama2-tiny{IN_TOML}"
gpu_type = "{IN_TOML}"
"{IN_TOML}" = 1
[target]
scheduler = "{IN_TOML}"
"""
RUN = f"""
[workload]
recipe = "maxtext/{IN_TOML}"
gpu_type = "{IN_TOML}"
dtype = "{IN_TOML}"
gpus = 1
[provenance]
created = "{IN_TOML}"
sweep = {{ "env.A" = "{IN_TOML}" }}
"""
RESULT = {
    "reason": EVIL,
    "verdict": EVIL,
    "notes": [EVIL],
    "failure": {"cause": EVIL, "evidence": EVIL, "remedy": EVIL},
}
EVENT = {"event": "planned", "time": 1.0, "run_id": "k3x9f"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Plant a record, a spec and a log."""
    record = Path(os.environ["LLMB_HOME"]) / "runs/k3x9f"
    (record / "logs").mkdir(parents=True)
    (record / "run.toml").write_text(RUN, encoding="utf-8")
    (record / "events.jsonl").write_text(json.dumps(EVENT) + "\n")
    (record / "result.json").write_text(json.dumps(RESULT))
    for name in ("train.0.log", f"{EVIL[:-1]}.log"):
        (record / "logs" / name).write_text(EVIL + "\nlast line\n", encoding="utf-8")
    (tmp_path / "spec.toml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "train.log").write_text(f"completed step: 0, {EVIL}\n{EVIL}Error: {EVIL}\n", encoding="utf-8")
    return tmp_path


def on_terminal(*arguments: str) -> str:
    """Return what ``llmb`` writes to a terminal that supports no colours."""
    with Terminal() as terminal:
        terminal.run_llmb(arguments, env={**os.environ, "TERM": "dumb", "NO_COLOR": "1"})
    return terminal.written


def controls(text: str) -> set[str]:
    """Return the characters that control a terminal, or the direction of its text."""
    return {each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs")} - {"\t", "\n"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs",),
        ("show", "k3x9f"),
        ("logs", "k3x9f"),
        ("show", EVIL[:-1]),
        ("recipes", EVIL[:-1]),
        ("validate", "FOLDER/spec.toml"),
        ("run", "FOLDER/spec.toml", "--dry-run", "--set", f"env.A={EVIL[:-1]}"),
        ("parse", "FOLDER/train.log", "--framework", "maxtext"),
        ("parse", "FOLDER", "--framework", "maxtext"),
        ("parse", "FOLDER/train.log", "--framework", EVIL[:-1]),
        ("doctor", EVIL[:-1]),
        (EVIL[:-1],),
    ],
    ids=lambda arguments: arguments[0] if arguments[0].isprintable() else "unknown command",
)
def test_no_control_character_reaches_a_terminal(folder: Path, arguments: tuple[str, ...]) -> None:
    shown = on_terminal(*(each.replace("FOLDER", str(folder)) for each in arguments))
    assert shown.strip()
    assert "Traceback" not in shown
    assert controls(shown) == set()


@pytest.mark.parametrize("text", [EVIL, Text(EVIL, "red"), Text.assemble("a", (EVIL, "bold"))])
def test_a_console_prints_no_control_character(text: str | Text, capsys: pytest.CaptureFixture[str]) -> None:
    output.console().print(text)
    shown = capsys.readouterr().out
    assert "evil" in shown
    assert controls(shown) == set()


@pytest.mark.parametrize("command", ["runs", "show"])
def test_a_run_that_is_shown_cannot_control_a_terminal(command: str) -> None:
    failure = llmb.Failure(cause=f"{EVIL}cause", evidence=f"{EVIL}evidence", remedy=f"{EVIL}remedy", host=f"{EVIL}host")
    for value in ("one", "other"):
        swept = {"sweep": {"env.A": f"{EVIL}{value}"}}
        [run_id] = record_runs([[7.0] * 50], state="failed", failure=failure, reason=EVIL, provenance=swept)
    if command == "show":
        record = Path(os.environ["LLMB_HOME"]) / "runs" / run_id
        record.rename(record.with_name(f"{run_id}{EVIL[:-1]}"))
    shown = on_terminal(command, *([run_id] if command == "show" else []))
    assert ("A=" if command == "runs" else "env.A = ") in shown
    assert controls(shown) == set()


def test_a_warning_about_a_pack_cannot_control_a_terminal() -> None:
    pack = Path(os.environ["XDG_CONFIG_HOME"]) / "llmb/accelerators.toml"
    pack.parent.mkdir(parents=True)
    pack.write_text(f'[odd]\n"{IN_TOML}" = 1\n', encoding="utf-8")
    shown = on_terminal(
        "metrics", "maxtext/llama2-70b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64", "--step-time", "7"
    )
    assert "left out" in shown
    assert controls(shown) == set()


def test_logs_are_shown_without_control_characters_unless_raw(folder: Path) -> None:
    assert "last line\n" in on_terminal("logs", "k3x9f")
    assert "\x1b]0;title\x07" in on_terminal("logs", "k3x9f", "--raw")
