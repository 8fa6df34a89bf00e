"""Jobs for the contract tests of schedulers, and their scripts."""

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import pytest

from llmb.plan_shared_tasks import with_secrets
from llmb.testing.plugin_checks import PluginContract
from llmb.values.errors import LlmbError, SpecError
from llmb.values.frozen import FrozenMap
from llmb.values.host import Host
from llmb.values.job import Job, Phase, Script
from llmb.values.run import Target
from llmb.values.types.check_types import decode

DIRECTORY = "/w/runs/contract"

HOSTILE = "a b'c\"d $HOME"
"""Text that only quoting keeps together."""

TASKS_PER_NODE = 2


def example_job(**changes: Any) -> Job:
    """Return a job with two phases on one node."""
    phases = (
        Phase(name="prepare", command=("true",), ranks="first", measured=False, outputs=(f"{DIRECTORY}/data",)),
        Phase(name="train", command=("python", "train.py", HOSTILE), env=FrozenMap({"WORDS": HOSTILE})),
    )
    job = Job(
        id="contract",
        directory=DIRECTORY,
        phases=phases,
        nodes=1,
        tasks_per_node=TASKS_PER_NODE,
        gpus_per_node=TASKS_PER_NODE,
        env=FrozenMap({"MODE": "it's"}),
        time_limit_s=600,
    )
    return attrs.evolve(job, **changes)


class SchedulerJobs(PluginContract):
    """The base of the contract tests of schedulers."""

    kind = "scheduler"
    scheduler: str
    target: ClassVar[Mapping[str, Any]] = FrozenMap()
    """Keys of [target]: those that the scheduler requires, and those that its jobs need on ``run_on``."""
    run_on: ClassVar[Host | None] = None
    """The host on which the tests run jobs, or None."""
    second_connection: ClassVar[Host | None] = None
    """Another connection to ``run_on``, for the second of two threads. None if ``run_on`` serves both, as LocalHost."""

    def target_of(self, job: Job, **keys: Any) -> Target[Any]:
        """Return the target of a job, with further keys. Raise SpecError for invalid keys."""
        workdir = job.directory.removesuffix(f"/runs/{job.id}")
        table = {key: value for key, value in {**self.target, **keys}.items() if key != "workdir"}
        options, errors = decode(table, self.plugin.options, "target")
        if options is None:
            raise SpecError(*errors)
        return Target(
            scheduler=self.plugin_name, workdir=workdir, options=options, gpus_per_node=max(job.gpus_per_node, 1)
        )

    def build(self, job: Job, target: Target[Any] | None = None) -> Script:
        """Call the hooks that come before the submission, and return the script. Raise SpecError or PluginError."""
        target = target or self.target_of(job)
        self.plugin.prepare_env(environment=job.environment, target=target)
        return with_secrets(self.plugin.build_job(job=job, target=target), job.environment.secrets)

    def script(self, job: Job | None = None) -> Script:
        """Return the script of a job. Skip the test if the hook fails."""
        try:
            return self.build(job or example_job())
        except LlmbError:
            pytest.skip("the hook build_job() fails; see test_implements_its_hooks")
