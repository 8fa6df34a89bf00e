"""Jobs as detached processes of the target's host, wherever that is: the local scheduler without its refusal."""

from __future__ import annotations

import attrs

from llmb import Environment, Job, Script, Target, Task, hookimpl
from llmb_local.plugin import Local, LocalOptions


class Detached(Local):
    """One job after another on the login node."""

    @hookimpl
    def prepare_env(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """Nothing is needed."""
        return ()

    @hookimpl
    def build_job(self, job: Job, target: Target[LocalOptions]) -> Script:
        """As on this machine."""
        return super().build_job(job, attrs.evolve(target, host=None))

    @hookimpl
    def probe(self, target: Target[LocalOptions]) -> str:
        """Its name, so that a host is asked before anything is recorded."""
        return "echo name=$(hostname)"
