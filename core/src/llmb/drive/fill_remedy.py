"""Remedies of a recorded run with its own names."""

import shlex
from collections.abc import Mapping

from llmb.logs.fill_commands import fill_commands
from llmb.planning import RunPlan
from llmb.plugins.addresses import address_in
from llmb.records.record import RunRecord
from llmb.values.environment import Image
from llmb.values.failure import Failure
from llmb.values.job_status import JobHandle


def fill_remedy(failure: Failure, plan: RunPlan, record: RunRecord) -> Failure:
    """Return the failure with the names of the run in the commands of its remedy. Unknown names stay in capitals."""
    return fill_commands(failure, _names(plan, record))


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
