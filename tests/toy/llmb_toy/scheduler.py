"""Schedulers that run jobs as detached processes, on any host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from llmb import Environment, Host, JobHandle, JobStatus, LogParser, Run, Script, Target, Task, hookimpl
from llmb_local.options import LocalOptions
from llmb_local.plugin import Local


class Detached(Local):
    """Local scheduler that accepts any host. Jobs run one after another."""

    @hookimpl
    def host(self, target: Target[LocalOptions]) -> str | None:  # type: ignore[override]  # on any host
        """Return the host of the target."""
        return target.host

    @hookimpl
    def prepare_env(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """Return no tasks."""
        return ()

    @hookimpl
    def probe(self, target: Target[LocalOptions]) -> str:
        """Return a script that prints the host name, so that llmb contacts the host before it records anything."""
        return "echo name=$(hostname)"


class Choosy(Detached):
    """Scheduler that rejects tasks, and runs in FP8."""

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Submit all but tasks and runs in FP8."""
        refused = [script for script in scripts if "-fp8-" in script.id or script.check]
        told = {"refused": "no FP8 after noon", "remedy": "come back in the morning"}
        handles = {script.id: JobHandle(id=script.id, directory=script.directory, **told) for script in refused}
        return handles | dict(super().submit([script for script in scripts if script not in refused], host))


class Faulty(Detached):
    """Scheduler whose hooks fail as a test wants: ``errors`` maps a hook to a function that may raise."""

    errors: ClassVar[dict[str, Callable[[Sequence[Script] | Sequence[JobHandle]], None]]] = {}

    @hookimpl
    def parse_log(self, run: Run[Any] | None) -> LogParser | None:
        """Return the parser, unless the test has an error."""
        self.errors.get("parse_log", no_error)(())
        return super().parse_log(run)

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Submit, unless the test has an error."""
        self.errors.get("submit", no_error)(scripts)
        return super().submit(scripts, host)

    @hookimpl
    def poll(self, handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
        """Poll, unless the test has an error."""
        self.errors.get("poll", no_error)(handles)
        return super().poll(handles, host)

    @hookimpl
    def cancel(self, handles: Sequence[JobHandle], host: Host) -> None:
        """Cancel, unless the test has an error."""
        self.errors.get("cancel", no_error)(handles)
        super().cancel(handles, host)


def no_error(_units: object) -> None:
    """Raise nothing."""
