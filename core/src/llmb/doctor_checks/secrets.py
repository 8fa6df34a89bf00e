"""Checks of the secrets that runs need."""

import os
from collections.abc import Iterable, Iterator

from llmb.hookspecs import DoctorCheck
from llmb.planning import RunPlan
from llmb.task_plans import TaskPlan


def check_secrets(plans: Iterable[RunPlan], missing: Iterable[TaskPlan]) -> Iterator[DoctorCheck]:
    """Yield a check for each secret that the runs and the missing items need."""
    scripts = [*(each.script for each in plans), *(task.script for task in missing)]
    for name in sorted({name for script in scripts for name in script.secrets}):
        if os.environ.get(name):
            yield DoctorCheck(name=name, ok=True, detail="set in the environment of llmb")
        else:
            remedy = f"run `export {name}=...` before llmb"
            yield DoctorCheck(name=name, ok=False, detail="not set in the environment of llmb", remedy=remedy)
