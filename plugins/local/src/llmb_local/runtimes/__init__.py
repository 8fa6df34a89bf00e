"""The runtimes in which the commands of a job can run: one module for each container engine and for environments."""

from llmb import Environment, Job, Target, Task
from llmb_local.options import LocalOptions


class Runtime:
    """The machine with the user's own environment, which llmb does not change. The other runtimes derive from it."""

    def tasks(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """Return the tasks that create the environment on this machine."""
        return ()

    def venv(self, job: Job, cache: str) -> str:
        """Return the folder of the virtual environment of the ranks, or "" without one."""
        return ""

    def container(self, job: Job, target: Target[LocalOptions]) -> str:
        """Return bash that defines ``contained PHASE``, which runs a phase in a container, or "" without containers.

        The bash may use ``gpus``, the indices of the job's GPUs, and the functions of start_ranks.sh and
        container_cleanup.sh. Raise SpecError if the runtime does not support the job.
        """
        return ""
