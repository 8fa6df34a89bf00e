"""Remedies of a recorded run with its own names."""

import math
import re
import shlex
from collections.abc import Mapping

import attrs

from llmb.logs.failures.commands_in_remedies import fill_commands
from llmb.plan_runs import RunPlan
from llmb.plugins.addresses import address_in
from llmb.records.record import RunRecord
from llmb.values.environment import Image
from llmb.values.failure import Failure
from llmb.values.job_status import JobHandle
from llmb.values.types.durations import LONGEST_S

SPARE = 1.25
"""Factor of the time of all steps, with a quarter for start-up and slower steps."""

SMALLER_MICRO_BATCH = re.compile(r"a smaller micro batch \(`[^`]+`\)")
"""The first remedy for a lack of memory. A run with a micro batch of 1 needs another one."""


def fill_remedy(failure: Failure, plan: RunPlan, record: RunRecord, steps_done: int = 0) -> Failure:
    """Return the failure with the names of the run in the commands of its remedy. Unknown names stay in capitals.

    A longer time limit suffices for all steps at the speed of ``steps_done``, the steps of the run that ended.
    """
    values = {"LONGER": _longer_limit(plan, steps_done)}
    if SMALLER_MICRO_BATCH.search(failure.remedy) and plan.run.parallelism.micro_batch_size == 1:
        shorter = "shorter sequences (`llmb run SPEC --set model.seq_len=SHORTER`)"
        failure = attrs.evolve(failure, remedy=SMALLER_MICRO_BATCH.sub(shorter, failure.remedy))
        values["SHORTER"] = str(max(1, plan.run.seq_len // 2))
    return fill_commands(failure, {**_names(plan, record), **values})


def _longer_limit(plan: RunPlan, steps_done: int) -> str:
    """Return a duration of at least twice the time limit, with a quarter to spare for the missing steps.

    The limit is rounded up to full minutes, because some schedulers count in minutes.
    """
    factor = SPARE * plan.run.steps / steps_done if steps_done else 0
    limit_minutes = math.ceil(plan.job.time_limit_s / 60)
    minutes = math.ceil(min(limit_minutes * max(2, factor), LONGEST_S / 60))
    return f"{minutes}m" if minutes % 60 else f"{minutes // 60}h"


def describe_rejection(handle: JobHandle, plan: RunPlan, record: RunRecord) -> str:
    """Return the reason for which the scheduler rejected a job, and the remedy."""
    failure = fill_remedy(Failure(cause=handle.refused, remedy=handle.remedy), plan, record)
    return "; ".join(filter(None, (failure.cause, failure.remedy)))


def _names(plan: RunPlan, record: RunRecord) -> Mapping[str, str]:
    """Return the words of a shell for the names that are known."""
    run = plan.run
    image = plan.job.environment.base if isinstance(plan.job.environment.base, Image) else None
    words = {
        "SPEC": str(record.directory / "run.toml"),
        "RUN": run.id,
        "LOGS": str(record.logs),
        "WORKDIR": plan.target.workdir,
        "FRAMEWORK": run.framework,
        "ADDRESS": address_in(run.framework, run.recipe),
        "IMAGE": image.pinned if image else "",
        "REGISTRY": image.registry if image else "",
    }
    return {name: shlex.quote(word) for name, word in words.items() if word}
