"""The tables of a framework's page that map each variable of the original scripts to a key of the spec."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb
from llmb import RunPlan
from llmb.cli.app import execute

DOCS = Path(__file__).parents[2] / "docs"


def rows(document: str, columns: int) -> list[list[str]]:
    """Return the rows of the tables whose first column is the variable in the scripts."""
    tables = re.findall(r"\| in the scripts \|.*\n\|[-|]+\n((?:\|.*\n)+)", document)
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for table in tables for line in table.splitlines()]
    return [row for row in cells if len(row) == columns]


def dry_run(folder: Path, tables: dict[str, dict[str, Any]], *overrides: str) -> dict[str, Any]:
    """Return the JSON of the one run in a dry run with these overrides, without its drawn id and digests."""
    file = folder / "spec.toml"
    file.write_text(tomli_w.dumps(tables))
    with redirect_stdout(io.StringIO()) as out, pytest.MonkeyPatch.context() as patch:
        for name in ("SBATCH_ACCOUNT", "SLURM_ACCOUNT", "SBATCH_PARTITION", "SLURM_PARTITION"):
            patch.delenv(name, raising=False)
        assert execute(["run", str(file), "--dry-run", "--json", *(f"--set={each}" for each in overrides)]) == 0
    [run] = json.loads(out.getvalue())["runs"]
    [run_id] = re.findall(r"LLMB_JOB_ID=(\S+)", run["script"])
    # The id and the digests may contain a text as short as "70b", which the tests search for.
    text = re.sub(r"\b[0-9a-f]{12}\b", "DIGEST", json.dumps(run).replace(run_id, "ID"))
    return dict(json.loads(text))


def planned(folder: Path, tables: dict[str, dict[str, Any]], *overrides: str) -> RunPlan:
    """Return the plan of the one run of a spec with these overrides."""
    file = folder / "spec.toml"
    file.write_text(tomli_w.dumps(tables))
    [run] = llmb.plan(llmb.load(file, overrides=overrides), registry=llmb.PluginRegistry())
    return run
