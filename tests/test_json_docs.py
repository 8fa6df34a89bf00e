"""Documents of ``--json``: docs/json.md names their keys."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from parts.forked import run_llmb
from parts.toy import ToyRuns

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/json.md").read_text()
LOGS = ROOT / "examples/logs"
POINT = ("--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
GRADE = ("grade", str(LOGS / "run1.log"), "--recipe", "maxtext/llama2-70b", *POINT)


def document(*command: str, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_llmb([*command, "--json"], **options).stdout)
    return found


def row(command: str) -> set[str]:
    """Return the names in the row of a command."""
    [text] = re.findall(rf"^\| `llmb {command}[^|]*\| (.*) \|$", PAGE, re.MULTILINE)
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))


COMMANDS = {
    "parse LOG": ("parse", str(LOGS / "run1.log"), "--framework", "maxtext"),
    "parse DIR": ("parse", str(LOGS), "--framework", "maxtext"),
    "grade": GRADE,
    "recipes": ("recipes", "maxtext/llama2-70b"),
    "validate": ("validate", str(ROOT / "examples/quickstart.toml")),
    "plugins": ("plugins",),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_names_the_keys_of_a_document(command: str) -> None:
    found = document(*COMMANDS[command])
    assert found.keys() <= row(command)
    for key in ("logs", "plugins") if command in ("parse DIR", "plugins") else ():
        assert found.get(key, [{}])[0].keys() <= row(command) | row("parse LOG")


def test_the_page_names_the_keys_of_a_comparison(toy: ToyRuns) -> None:
    for _ in range(2):
        toy.run(workload={"recipe": "toy/judged"})
    one, two = (record.name for record in toy.records)
    assert document("compare", one, two, env=toy.env).keys() <= row("compare")


def test_show_prints_a_run_and_its_sets(toy: ToyRuns) -> None:
    run = toy.run()
    shown = document("show", run["run_id"], env=toy.env)
    assert shown.keys() - run.keys() == {"sets"}
    assert run.keys() <= shown.keys()
