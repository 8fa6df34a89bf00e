"""Remedies of a run with its own names, so that users can paste the commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

import attrs

from llmb.planning import RunPlan
from llmb.records.record import RunRecord
from llmb.values.environment import Image
from llmb.values.failure import Failure
from llmb.values.job_status import JobHandle

COMMAND = re.compile(r"`[^`]+`")
NAME = re.compile(
    r"(?<=[ =])(?:SPEC|RUN|ADDRESS|NODE|PATH|LOGS|FRAMEWORK)\b"
    r"|(?<=[ ])IMAGE\b"  # not in options of container runtimes, which write an address differently
    r"|(?<=[ /])REGISTRY\b(?!\#)"
)
"""A name of the run in capitals in a command, such as ``SPEC`` in ``llmb run SPEC``."""

PATH = re.compile(
    r"""(?P<quote>['"])(?P<quoted>/[\w.@+=/-]+)(?P=quote)|(?<![^\s:=(])(?P<bare>/[\w.@+=/-]+)(?![^\s:,)])"""
)
HOST = re.compile(r"\w[\w.-]*")
"""Paths and hosts of a log, which other programs may have written, have no character that a shell interprets."""


def fill_remedy(failure: Failure, plan: RunPlan, record: RunRecord) -> Failure:
    """Return the failure with the names of the run in the commands of its remedy. Unknown names stay in capitals."""
    names = _names(failure, plan, record)

    def fill(command: re.Match[str]) -> str:
        return NAME.sub(lambda name: names.get(name[0]) or name[0], command[0])

    return attrs.evolve(failure, remedy=COMMAND.sub(fill, failure.remedy))


def describe_rejection(handle: JobHandle, plan: RunPlan, record: RunRecord) -> str:
    """Return the reason for which the scheduler rejected a job, and the remedy."""
    failure = fill_remedy(Failure(cause=handle.refused, remedy=handle.remedy), plan, record)
    return "; ".join(filter(None, (failure.cause, failure.remedy)))


def _names(failure: Failure, plan: RunPlan, record: RunRecord) -> Mapping[str, str]:
    """Return the words of a shell for the names that are known."""
    image = plan.job.environment.base if isinstance(plan.job.environment.base, Image) else None
    paths = {path["quoted"] or path["bare"] for path in PATH.finditer(f"{failure.evidence} {failure.cause}")}
    host = failure.host if failure.host and HOST.fullmatch(failure.host) else ""
    words = {
        "SPEC": str(record.directory / "run.toml"),
        "RUN": plan.run.id,
        "LOGS": str(record.logs),
        "FRAMEWORK": plan.run.framework,
        "ADDRESS": plan.run.recipe,
        "IMAGE": image.pinned if image else "",
        "REGISTRY": image.registry if image else "",
        "NODE": host,
        "PATH": paths.pop() if len(paths) == 1 else "",
    }
    return {name: shlex.quote(word) for name, word in words.items() if word}
