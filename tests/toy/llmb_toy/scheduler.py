"""Jobs as detached processes of the target's host, wherever that is: the local scheduler without its refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmb import Environment, Host, JobHandle, Script, Target, Task, hookimpl
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


class Choosy(Detached):
    """It takes no run in FP8, and no task."""

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Those in FP8, and tasks, are refused."""
        refused = [script for script in scripts if "-fp8-" in script.id or script.check]
        told = {"refused": "no FP8 after noon", "remedy": "come back in the morning"}
        tickets = {script.id: JobHandle(id=script.id, directory=script.directory, **told) for script in refused}
        return tickets | dict(super().submit([script for script in scripts if script not in refused], host))
