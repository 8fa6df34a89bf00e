"""Sampling of the GPUs of each node while a job runs, if the spec has a table [telemetry]."""

from typing import Any

import attrs

from llmb.files import resource_text
from llmb.values.frozen import FrozenMap
from llmb.values.job import Job, Sidecar
from llmb.values.run import Run

TELEMETRY = "telemetry"
"""The name of the sidecar, and of its log."""


def with_telemetry(job: Job, run: Run[Any]) -> Job:
    """Return the job of a run with the process that samples the GPUs, if the spec has the table [telemetry]."""
    if run.telemetry is None:
        return job
    script = f"{job.directory}/sample_gpus.sh"
    sidecar = Sidecar(name=TELEMETRY, command=("bash", script, str(run.telemetry.interval)))
    files = FrozenMap({**job.files, script: resource_text(__package__, "sample_gpus.sh")})
    return attrs.evolve(job, sidecars=(*job.sidecars, sidecar), files=files)
