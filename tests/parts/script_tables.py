"""The tables of a framework's page that say what stands for each variable of the original scripts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import tomli_w

import llmb
from llmb import RunPlan

DOCS = Path(__file__).parents[2] / "docs"


def rows(document: str, columns: int) -> list[list[str]]:
    """The rows of the tables whose first column is what stands in the scripts."""
    tables = re.findall(r"\| in the scripts \|.*\n\|[-|]+\n((?:\|.*\n)+)", document)
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for table in tables for line in table.splitlines()]
    return [row for row in cells if len(row) == columns]


def planned(folder: Path, tables: dict[str, dict[str, Any]], *overrides: str) -> RunPlan:
    """The run of a spec that sets nothing more than these overrides."""
    file = folder / "spec.toml"
    file.write_text(tomli_w.dumps(tables))
    [run] = llmb.plan(llmb.load(file, overrides=overrides), pool=llmb.PluginRegistry())
    return run
