"""The notebook of the examples, and the tables that values have in a notebook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import DEADLINE_S
from parts.recorded_runs import record_runs

import llmb

NOTEBOOK = Path(__file__).parents[1] / "examples/notebook.ipynb"
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=float(sys.argv[3])).execute()
nbformat.write(notebook, sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.xdist_group("notebook")
def test_the_notebook_runs_and_plots_scaling(tmp_path: Path) -> None:
    record_runs([[7.0] * 10])
    record_runs([[7.7] * 10], workload={"gpus": 128})
    out = tmp_path / "executed.ipynb"
    command = [sys.executable, "-c", EXECUTE, str(NOTEBOOK), str(out), str(DEADLINE_S)]
    env = {**os.environ, "MPLCONFIGDIR": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    cells: dict[str, Any] = {cell["id"]: cell for cell in json.loads(out.read_text())["cells"]}
    data = {
        name: [kind for each in cell.get("outputs", ()) for kind in each.get("data", ())]
        for name, cell in cells.items()
    }
    assert "text/html" in data["run"]
    assert "image/png" in data["steps"]
    assert "image/png" in data["scaling"]
    assert "text/html" in data["compare"]
    assert all(cell.get("outputs", []) == [] for cell in json.loads(NOTEBOOK.read_text())["cells"])


def test_values_have_tables_with_escaped_text() -> None:
    failure = llmb.Failure(cause="<script>", evidence="", remedy="a & b\x1b[31m")
    [run_id] = record_runs([[7.0] * 10], state="failed", failure=failure)
    result = llmb.find_run(run_id)
    html = result._repr_html_()
    assert "<td>&lt;script&gt;</td>" in html
    assert "a &amp; b</td>" in html
    assert "<td>step time (s)</td><td>7</td>" in html
    assert result.metrics
    assert "MFU (%)" in result.metrics._repr_html_()
    a, b = record_runs([[7.0] * 10]), record_runs([[8.0] * 10])
    html = llmb.compare(a[0], b[0])._repr_html_()
    assert "+14.3 % ±" in html
    assert "<caption>1 run compared with 1</caption>" in html
