"""The tables of a framework's page that say what stands for each variable of the original scripts."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import tomli_w

import llmb
from llmb import RunPlan
from llmb.cli.app import execute

DOCS = Path(__file__).parents[2] / "docs"


def rows(document: str, columns: int) -> list[list[str]]:
    """The rows of the tables whose first column is what stands in the scripts."""
    tables = re.findall(r"\| in the scripts \|.*\n\|[-|]+\n((?:\|.*\n)+)", document)
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for table in tables for line in table.splitlines()]
    return [row for row in cells if len(row) == columns]


def dry_run(folder: Path, tables: dict[str, dict[str, Any]], *overrides: str) -> dict[str, Any]:
    """Return what a dry run of a spec with these overrides prints of its run."""
    file = folder / "spec.toml"
    file.write_text(tomli_w.dumps(tables))
    with redirect_stdout(io.StringIO()) as out:
        assert execute(["run", str(file), "--dry-run", "--json", *(f"--set={each}" for each in overrides)]) == 0
    [run] = json.loads(out.getvalue())["runs"]
    return dict(run)


def planned(folder: Path, tables: dict[str, dict[str, Any]], *overrides: str) -> RunPlan:
    """The run of a spec that sets nothing more than these overrides."""
    file = folder / "spec.toml"
    file.write_text(tomli_w.dumps(tables))
    [run] = llmb.plan(llmb.load(file, overrides=overrides), registry=llmb.PluginRegistry())
    return run
