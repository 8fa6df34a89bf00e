"""Runs of NeMo's stand-ins: a server that replaces Hugging Face, and a folder with everything that a run needs."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import tomli_w
from parts.forked import run_llmb

STANDIN = Path(__file__).parents[1] / "nemo_standin"
ENOUGH_SPACE = """\
#!/bin/sh
case "$*" in *-f*) echo "1000000000 4096" ;; *) exec /usr/bin/stat "$@" ;; esac
"""


class Hub(BaseHTTPRequestHandler):
    """Server with every file of every repository, or with an error status for all."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


class NeMoRuns:
    """Runs of NeMo's stand-in in a folder. ``target`` is the [target] of their specs."""

    def __init__(self, folder: Path, hub: str, **target: Any) -> None:
        self.folder = folder
        self.target = target
        self.workdir = folder / "work"
        self.sources = folder / "opt"
        shutil.copytree(STANDIN, self.sources)
        (folder / "bin").mkdir()
        (folder / "bin" / "stat").write_text(ENOUGH_SPACE)  # the Pile needs more than a test machine has
        (folder / "bin" / "stat").chmod(0o755)
        self.env = {
            **os.environ,
            "LLMB_HOME": str(folder / "home"),
            "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HF_ENDPOINT": hub,
            "HF_TOKEN": "hf_0123456789",
        }

    def claim(self, **settings: Any) -> None:
        """Set how the stand-ins behave: step_s, nan_step, fail."""
        (self.sources / "standin.json").write_text(json.dumps(settings))

    def run(self, recipe: str = "llama3.1-8b", dtype: str = "bf16", gpus: int = 8, **tables: Any) -> dict[str, Any]:
        """Run a spec to its end."""
        usual: dict[str, dict[str, Any]] = {
            "workload": {"recipe": f"nemo_launcher/{recipe}", "gpu_type": "h100", "dtype": dtype, "gpus": gpus},
            "framework": {
                "nemo": str(self.sources / "NeMo"),
                "launcher": str(self.sources / "NeMo-Framework-Launcher"),
            },
            "target": {"workdir": str(self.workdir), **self.target},
        }
        for table, keys in tables.items():
            usual[table] = usual.get(table, {}) | keys
        file = self.folder / "spec.toml"
        file.write_text(tomli_w.dumps(usual))
        done = run_llmb(["run", str(file), "--json"], env=self.env)
        assert done.returncode in (0, 1), done.stderr + done.stdout
        [run] = json.loads(done.stdout)["runs"]
        return dict(run)

    @staticmethod
    def steps(run: dict[str, Any]) -> list[dict[str, str]]:
        """Return the rows of the record's steps.csv."""
        return list(csv.DictReader((Path(run["directory"]) / "steps.csv").read_text().splitlines()))

    @property
    def data(self) -> Path:
        return self.workdir / "cache" / "llama3.1-dataset"
