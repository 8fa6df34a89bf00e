"""Jobs as detached processes of the target's host, wherever that is: the local scheduler without its refusal."""

from __future__ import annotations

from llmb import Environment, Target, Task, hookimpl
from llmb_local.plugin import Local, LocalOptions


class Detached(Local):
    """One job after another on the login node."""

    @hookimpl
    def host(self, target: Target[LocalOptions]) -> str | None:
        """Whichever is named."""
        return target.host

    @hookimpl
    def prepare_env(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """Nothing is needed."""
        return ()

    @hookimpl
    def probe(self, target: Target[LocalOptions]) -> str:
        """Its name, so that a host is asked before anything is recorded."""
        return "echo name=$(hostname)"
