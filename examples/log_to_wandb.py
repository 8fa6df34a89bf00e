# /// script
# requires-python = ">=3.11"
# dependencies = ["llmb", "llmb-local", "llmb-maxtext", "llmb-slurm", "wandb>=0.31,<0.32"]
#
# [tool.uv.sources]
# llmb = { path = "../core", editable = true }
# llmb-local = { path = "../plugins/local", editable = true }
# llmb-maxtext = { path = "../plugins/maxtext", editable = true }
# llmb-slurm = { path = "../plugins/slurm", editable = true }
# ///
"""Runs a workload, and logs each run to Weights & Biases when the run ends.

WANDB_MODE=offline uv run examples/log_to_wandb.py examples/quickstart.toml

With run ids instead of a spec, it follows these runs and logs them, also those that have ended already.
"""

import sys

import wandb

import llmb


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
    """Log a run that has ended: its settings, steps, result and verdict."""
    settings = {"recipe": result.recipe, "gpu_type": result.gpu_type, "dtype": result.dtype, "gpus": result.gpus}
    run = wandb.init(project="llmb", id=result.run_id, name=result.run_id, config=settings | dict(result.sweep))
    steps = result.steps
    for step, time_s, loss in zip(*(steps.get(name, ()) for name in ("step", "time_s", "loss")), strict=True):
        run.log({"time_s": time_s, "loss": loss}, step=int(step))
    run.summary.update({"state": result.state, "verdict": result.verdict, "reason": result.reason})
    if result.metrics:
        run.summary.update(result.metrics.as_dict())
    if result.failure:
        run.summary.update({"cause": result.failure.cause, "remedy": result.failure.remedy})
    run.finish(exit_code=0 if result.state == "completed" else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
