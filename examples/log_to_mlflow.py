# /// script
# requires-python = ">=3.11"
# dependencies = ["llmb", "llmb-local", "llmb-maxtext", "llmb-slurm", "mlflow>=3.17,<4"]
#
# [tool.uv.sources]
# llmb = { path = "../core", editable = true }
# llmb-local = { path = "../plugins/local", editable = true }
# llmb-maxtext = { path = "../plugins/maxtext", editable = true }
# llmb-slurm = { path = "../plugins/slurm", editable = true }
# ///
"""Runs a workload, and logs each run to MLflow when the run ends.

MLFLOW_TRACKING_URI=http://127.0.0.1:5000 uv run examples/log_to_mlflow.py examples/quickstart.toml

With run ids instead of a spec, it follows these runs and logs them, also those that have ended already.
"""

import sys
from collections.abc import Iterator

import mlflow
from mlflow.entities import Metric

import llmb

STATUS = {"completed": "FINISHED", "cancelled": "KILLED"}
METRICS_PER_REQUEST = 1000  # MLflow's limit


def main(arguments: list[str]) -> None:
    """Start the spec or follow the runs that the arguments name, and log each run that ends."""
    session = llmb.start(llmb.load(arguments[0])) if arguments[0].endswith(".toml") else llmb.attach(arguments)
    for result in session.results:
        if result.ended:
            log_run(result)
    for event in session:
        if isinstance(event, llmb.Ended):
            log_run(llmb.find_run(event.run_id))


def log_run(result: llmb.RunResult) -> None:
    """Log a run that has ended: its settings, metrics, steps and record."""
    mlflow.set_experiment(result.recipe or "llmb")
    run = mlflow.start_run(run_name=result.run_id)
    mlflow.log_params({"gpu_type": result.gpu_type, "dtype": result.dtype, "gpus": result.gpus} | dict(result.sweep))
    mlflow.set_tags({"state": result.state, "verdict": result.verdict or "none", "reason": result.reason})
    if result.failure:
        mlflow.set_tags({"cause": result.failure.cause, "remedy": result.failure.remedy})
    if result.metrics:
        values = result.metrics.as_dict()
        mlflow.log_metrics({key: value for key, value in values.items() if isinstance(value, int | float)})
    metrics = list(step_metrics(result))
    for first in range(0, len(metrics), METRICS_PER_REQUEST):
        mlflow.MlflowClient().log_batch(run.info.run_id, metrics=metrics[first : first + METRICS_PER_REQUEST])
    mlflow.log_artifacts(result.directory, "record")
    mlflow.end_run(STATUS.get(result.state, "FAILED"))


def step_metrics(result: llmb.RunResult) -> Iterator[Metric]:
    """Yield every value that the log has for a step."""
    steps = result.steps
    for name in ("time_s", "loss"):
        for step, value in zip(steps.get("step", ()), steps.get(name, ()), strict=True):
            if value is not None:
                yield Metric(f"step/{name}", value, timestamp=0, step=int(step))


if __name__ == "__main__":
    main(sys.argv[1:])
