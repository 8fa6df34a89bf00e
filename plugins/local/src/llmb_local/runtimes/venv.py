"""Virtual environments: uv creates one for each lock file."""

import sys

from llmb import Environment, Job, Target, Task, Venv, venv_folder, venv_task
from llmb_local.options import LocalOptions
from llmb_local.runtimes import Runtime


class VenvRuntime(Runtime):
    """A virtual environment, which uv creates once for each lock file."""

    def tasks(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """Return the task that creates the environment."""
        assert isinstance(environment.base, Venv)
        return (venv_task(environment.base, target.cache, uv=_installed_uv(), python=sys.executable),)

    def venv(self, job: Job, cache: str) -> str:
        """Return the folder in which the task creates the environment."""
        assert isinstance(job.environment.base, Venv)
        return venv_folder(job.environment.base, cache)


def _installed_uv() -> str:
    """Return the path of uv, or "" if it was not installed with llmb. The task then searches for it."""
    try:
        import uv  # its folder is where the program is; not needed to poll

        return uv.find_uv_bin()
    except (ImportError, FileNotFoundError):
        return ""
