"""The examples that log runs to MLflow and to Weights & Biases, with a real MLflow server and W&B in offline mode."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import uv
from parts.deadline import DEADLINE_S, wait_until
from parts.ports import free_port
from parts.toy import TOY

EXAMPLES = Path(__file__).parents[1] / "examples"
OFFLINE = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "WANDB_MODE": "offline", "WANDB_SILENT": "true"}

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("trackers")]


class Example:
    """One example, in the environment that its own header describes."""

    def __init__(self, name: str) -> None:
        self._script = EXAMPLES / name
        uv_command(["sync", "--quiet", "--script", str(self._script)])
        self.python = uv_command(["python", "find", "--script", str(self._script)]).strip()

    def run(self, toy: Any, *arguments: str, **env: str) -> None:
        command = [self.python, str(self._script), *arguments]
        settings = {**toy.env, "PYTHONPATH": str(TOY), **OFFLINE, **env}
        done = subprocess.run(
            command, env=settings, cwd=toy.folder, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert done.returncode == 0, done.stderr + done.stdout


def uv_command(arguments: list[str]) -> str:
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        [uv.find_uv_bin(), *arguments], env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class MLflowServer:
    """A running MLflow server, which is queried through its REST interface."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def post(self, name: str, **body: Any) -> dict[str, Any]:
        return self._json(urllib.request.Request(f"{self.uri}/api/2.0/mlflow/{name}", json.dumps(body).encode()))

    def get(self, query: str) -> dict[str, Any]:
        return self._json(urllib.request.Request(f"{self.uri}/api/2.0/mlflow/{query}"))

    def is_ready(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.uri}/health", timeout=5)
        except OSError:
            return False
        return True

    def runs(self, experiment: str) -> dict[str, dict[str, Any]]:
        """Return the runs of an experiment by name."""
        found = self.get(f"experiments/get-by-name?experiment_name={experiment}")["experiment"]
        runs = self.post("runs/search", experiment_ids=[found["experiment_id"]])["runs"]
        return {run["info"]["run_name"]: run for run in runs}

    @staticmethod
    def _json(request: urllib.request.Request) -> dict[str, Any]:
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return dict(json.load(answer))


@pytest.fixture(scope="module")
def mlflow() -> Example:
    return Example("log_to_mlflow.py")


@pytest.fixture(scope="module")
def server(mlflow: Example, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MLflowServer]:
    folder = tmp_path_factory.mktemp("mlflow")
    port = free_port()
    storage = ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", f"{folder}/files"]
    listening = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [mlflow.python, "-m", "mlflow", "server", *listening, *storage],
            env={**os.environ, **OFFLINE},
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    found = MLflowServer(f"http://127.0.0.1:{port}")
    try:
        wait_until(found.is_ready, "the MLflow server")
        yield found
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def values(items: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {each["key"]: each["value"] for each in items}


def test_mlflow_gets_each_run_of_a_workload_when_it_ends(mlflow: Example, server: MLflowServer, toy: Any) -> None:
    spec = toy.spec(sweep={"framework.end": ["nothing", "exit 3"]}, framework={"end_step": 3})
    mlflow.run(toy, spec, MLFLOW_TRACKING_URI=server.uri)

    for result in toy.runs("runs"):
        run = server.runs("toy/tiny")[result["run_id"]]
        assert run["info"]["status"] == ("FINISHED" if result["state"] == "completed" else "FAILED")
        assert values(run["data"]["tags"])["state"] == result["state"]
        params = values(run["data"]["params"])
        assert (params["gpus"], params["framework.end"]) == ("1", result["sweep"]["framework.end"])
        history = server.get(f"metrics/get-history?run_id={run['info']['run_id']}&metric_key=step/time_s")["metrics"]
        assert [each["step"] for each in history] == list(range(1, result["steps_done"] + 1))
        if result["metrics"]:
            logged = values(run["data"]["metrics"])["step_time_s"]
            assert logged == pytest.approx(result["metrics"]["step_time_s"])
        files = server.get(f"artifacts/list?run_id={run['info']['run_id']}&path=record")["files"]
        assert {"record/run.toml", "record/steps.csv", "record/logs"} <= {each["path"] for each in files}


def test_mlflow_gets_a_run_that_has_ended_already(mlflow: Example, server: MLflowServer, toy: Any) -> None:
    run_id = toy.run()["run_id"]
    mlflow.run(toy, run_id, MLFLOW_TRACKING_URI=server.uri)
    assert server.runs("toy/tiny")[run_id]["info"]["status"] == "FINISHED"


READ_OFFLINE_RUN = """
import json, struct, sys
from wandb.proto.wandb_internal_pb2 import Record
data, records, part = open(sys.argv[1], "rb").read(), [], b""
at = 7  # after the header of a LevelDB log: blocks of 32 KiB with fragments of records
while at + 7 <= len(data):
    if 32768 - at % 32768 < 7:
        at += 32768 - at % 32768
        continue
    _, length, kind = struct.unpack("<IHB", data[at : at + 7])
    part += data[at + 7 : at + 7 + length]
    at += 7 + length
    if kind in (1, 4):  # a whole record, or its last fragment
        records.append(Record.FromString(part))
        part = b""
def table(items): return {"/".join(each.nested_key) or each.key: json.loads(each.value_json) for each in items}
summary = {}
for record in records:
    summary |= table(record.summary.update)
print(json.dumps({
    "config": {key: value for record in records for key, value in table(record.run.config.update).items()},
    "history": [table(record.history.item) for record in records if record.history.item],
    "summary": summary,
    "exit_codes": [record.exit.exit_code for record in records if record.HasField("exit")],
}))
"""


def test_wandb_gets_each_run_of_a_workload_in_offline_mode(toy: Any) -> None:
    wandb = Example("log_to_wandb.py")
    wandb.run(toy, toy.spec())
    [result] = toy.runs("runs")
    [file] = (toy.folder / "wandb").glob(f"offline-run-*/run-{result['run_id']}.wandb")
    command = [wandb.python, "-c", READ_OFFLINE_RUN, str(file)]
    logged = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True).stdout)
    assert logged["config"]["recipe"] == "toy/tiny"
    assert [row["_step"] for row in logged["history"]] == list(range(1, result["steps_done"] + 1))
    assert all(row["time_s"] > 0 for row in logged["history"])
    assert logged["summary"]["state"] == "completed"
    assert logged["summary"]["step_time_s"] == pytest.approx(result["metrics"]["step_time_s"])
    assert logged["exit_codes"] == [0]
