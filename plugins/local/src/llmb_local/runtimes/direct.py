"""Commands as processes of this machine: in a virtual environment, or in what the user has prepared."""

from __future__ import annotations

import sys

from llmb import Environment, Job, Target, Task, Venv, venv_folder, venv_task
from llmb_local.options import LocalOptions


class DirectRuntime:
    """Nothing is made: the user has prepared what the commands need."""

    def tasks(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """None."""
        return ()

    def venv(self, job: Job, cache: str) -> str:
        """None."""
        return ""

    def container(self, job: Job, target: Target[LocalOptions]) -> str:
        """None."""
        return ""


class InVenv(DirectRuntime):
    """A virtual environment, made by uv once for each lock file."""

    def tasks(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """The environment."""
        import uv  # its folder is where the program is; not needed to poll

        assert isinstance(environment.base, Venv)
        return (venv_task(environment.base, target.cache, uv=uv.find_uv_bin(), python=sys.executable),)

    def venv(self, job: Job, cache: str) -> str:
        """Where the task made it."""
        assert isinstance(job.environment.base, Venv)
        return venv_folder(job.environment.base, cache)
