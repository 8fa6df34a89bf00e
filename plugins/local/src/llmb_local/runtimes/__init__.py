"""What a job's commands run in. Each runtime is a module of its own behind one Protocol."""

from __future__ import annotations

from typing import Protocol

from llmb import Environment, Job, Target, Task
from llmb_local.options import LocalOptions


class Runtime(Protocol):
    """How an environment comes to be on this machine, and how phases are started in it."""

    def tasks(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """What makes the environment."""

    def venv(self, job: Job, cache: str) -> str:
        """The folder of the virtual environment that the ranks run in; empty without one."""

    def container(self, job: Job, target: Target[LocalOptions]) -> str:
        """Bash with a function ``contained PHASE`` and all that it needs; empty where no container is started.

        It finds ``gpus``, the numbers of those that the job has, and the functions of ranks.sh and containers.sh.
        Raises SpecError for what the runtime cannot do.
        """
