"""The whole road of a NeMo run on one machine without a container: tokenizer, data, training, figures, verdict.

Stand-ins take the places of NeMo and its launcher (nemo_standin/README.md), a server of the tests' own that of Hugging
Face; all else is real, Hydra too.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import tomli_w

STANDIN = Path(__file__).parent / "nemo_standin"
BARE = """\
from llmb_local.plugin import Local


class Bare(Local):
    def prepare_env(self, environment, target):
        return ()
"""
ENOUGH_SPACE = """\
#!/bin/sh
case "$*" in *-f*) echo "1000000000 4096" ;; *) exec /usr/bin/stat "$@" ;; esac
"""


class Hub(BaseHTTPRequestHandler):
    """Has every file of every repository."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class Road:
    """A home, a scheduler that starts every rank here without a container, and what it takes to run NeMo's stand-in."""

    def __init__(self, folder: Path, hub: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._install("llmb_bare", "llmb.schedulers", "bare = llmb_bare:Bare", BARE)
        (folder / "bin").mkdir()
        (folder / "bin" / "stat").write_text(ENOUGH_SPACE)  # the Pile asks for more than a test machine has
        (folder / "bin" / "stat").chmod(0o755)
        self.env = {
            **os.environ,
            "LLMB_HOME": str(self.home),
            "PYTHONPATH": str(folder / "site"),
            "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HF_ENDPOINT": hub,
            "HF_TOKEN": "hf_0123456789",
        }

    def _install(self, module: str, group: str, entry: str, code: str) -> None:
        info = self.folder / "site" / f"{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (self.folder / "site" / f"{module}.py").write_text(code)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")

    def run(self, recipe: str = "llama3.1-8b", dtype: str = "bf16", gpus: int = 8, **tables: Any) -> dict[str, Any]:
        """One run, to its end."""
        usual: dict[str, dict[str, Any]] = {
            "workload": {"recipe": f"nemo_launcher/{recipe}", "gpu_type": "h100", "dtype": dtype, "gpus": gpus},
            "framework": {"nemo": str(STANDIN / "NeMo"), "launcher": str(STANDIN / "NeMo-Framework-Launcher")},
            "target": {"scheduler": "bare", "lock": str(self.folder / "lock"), "grace_s": 1},
        }
        for table, keys in tables.items():
            usual[table] = usual.get(table, {}) | keys
        file = self.folder / "spec.toml"
        file.write_text(tomli_w.dumps(usual))
        command = [sys.executable, "-m", "llmb", "run", str(file), "--json"]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr + done.stdout
        [run] = json.loads(done.stdout)["runs"]
        return dict(run)

    @staticmethod
    def steps(run: dict[str, Any]) -> list[dict[str, str]]:
        """The rows of the record's steps.csv."""
        return list(csv.DictReader((Path(run["directory"]) / "steps.csv").read_text().splitlines()))

    @property
    def data(self) -> Path:
        return self.home / "work" / "cache" / "llama3.1-dataset"


@pytest.fixture
def road(tmp_path: Path, hub: str) -> Road:
    return Road(tmp_path, hub)


def test_the_whole_road_ends_in_figures_and_a_verdict(road: Road) -> None:
    run = road.run(env={"STANDIN_STEP_S": "12.91"})
    assert run["state"] == "completed", run
    figures = run["metrics"]

    assert {path.name for path in road.data.iterdir()} == {
        f"my-llama_0{shard}_text_document.{suffix}" for shard in (0, 1) for suffix in ("bin", "idx")
    }
    assert (figures["step_time_s"], figures["global_batch_size"]) == (pytest.approx(12.9, abs=0.05), 128)
    assert figures["mfu"] == pytest.approx(0.594, abs=0.005)
    steps = road.steps(run)
    assert [int(row["step"]) for row in steps] == list(range(1, 51))
    assert float(steps[-1]["consumed_samples"]) == 50 * 128
    # [env] changes what is run, so that it is not comparable; the ratio is told all the same
    assert run["verdict"] == "undecided"
    assert figures["baseline"]["step_time_ratio"] == pytest.approx(1.0, abs=0.005)


@pytest.mark.parametrize(("step_time_s", "verdict"), [("9.70", "pass"), ("12.5", "fail")])
def test_the_verdict_follows_the_last_step(road: Road, step_time_s: str, verdict: str) -> None:
    road.env["STANDIN_STEP_S"] = step_time_s
    run = road.run(dtype="fp8")

    assert (run["state"], run["verdict"]) == ("completed", verdict), run


def test_a_figure_that_is_a_mean_of_five_is_recorded_as_such(road: Road) -> None:
    run = road.run("grok1-314b", "bf16")
    steps = road.steps(run)

    assert run["state"] == "completed", run
    assert [int(row["mean_of"]) for row in steps][:7] == [1, 2, 3, 4, 5, 5, 5]
    assert [float(row["time_s"]) for row in steps[:6]] == [12.5, 7.5, 5.83, 5.0, 4.5, 2.5]
    assert not road.data.exists()


def test_a_wrong_override_ends_the_run_and_is_told(road: Road) -> None:
    run = road.run("grok1-314b", "bf16", framework={"config": {"model.gc_interval": "[3"}})

    assert run["state"] == "failed"
    assert "OverrideParseException" in str(run["failure"])


@pytest.mark.parametrize(
    "stage",
    [pytest.param("download", marks=pytest.mark.slow), pytest.param("extract", marks=pytest.mark.slow), "preprocess"],
)
def test_data_that_could_not_be_made_name_their_log_and_are_made_anew_the_next_time(road: Road, stage: str) -> None:
    road.env["STANDIN_FAIL"] = stage
    failed = road.run()
    cause = failed["failure"]["cause"]
    assert failed["state"] == "failed"
    assert "the Pile could not be made: " in cause
    assert f"phase {stage}: its output" in cause
    assert "the network is down" in cause
    assert f"/logs/{stage}.0." in cause

    del road.env["STANDIN_FAIL"]
    assert road.run()["state"] == "completed"


def test_a_loss_of_nan_is_a_failure(road: Road) -> None:
    road.env["STANDIN_NAN_STEP"] = "7"
    run = road.run("grok1-314b", "bf16")

    assert (run["state"], run["verdict"]) == ("failed", "undecided")
    assert "NaN" in run["reason"]


def test_a_trace_of_nccl_is_recorded_and_not_judged(road: Road) -> None:
    run = road.run("grok1-314b", "bf16", profile={"tool": "nccl-trace"})

    assert (run["state"], run["verdict"]) == ("completed", None)
    assert len(road.steps(run)) == 10
    assert (road.home / "work" / "runs" / run["run_id"] / "nccl-trace").is_dir()
