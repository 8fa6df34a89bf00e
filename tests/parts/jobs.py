"""A job for tests of schedulers."""

from __future__ import annotations

from typing import Any

from llmb import Job, Phase


def job(**changes: Any) -> Job:
    """Return a small job on one node, with these changes."""
    usual: dict[str, Any] = {
        "id": "abcde-tiny",
        "directory": "/work/runs/abcde-tiny",
        "phases": (Phase(name="train", command=("python", "train.py")),),
        "nodes": 1,
        "tasks_per_node": 1,
        "gpus_per_node": 0,
        "time_limit_s": 1800,
    }
    return Job(**usual | changes)
