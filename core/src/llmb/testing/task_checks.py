"""Contract tests of the tasks that create the datasets of a framework."""

import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import attrs

from llmb.testing.bash_text import bash_errors
from llmb.testing.job_checks import HOSTILE
from llmb.testing.override_checks import OverrideContract, choices
from llmb.testing.plugin_checks import fail
from llmb.testing.sample_runs import PATHS, describe, with_key
from llmb.values.job import Job, Task
from llmb.values.run import Paths, Run

CHECK_S = 60
"""The time that a check may take."""


class TaskContract(OverrideContract):
    """Tests of the tasks of datasets, also of those that only an option needs."""

    def test_tasks_are_quoted(self) -> None:
        """Bash of a task stays valid if a path contains quotes and blanks."""
        for run, task in self._tasks(HOSTILE):
            for place, text in (("work", task.work), ("check", task.check)):
                if isinstance(text, str) and (error := bash_errors(text)):
                    fail(f"{describe(run)}: invalid bash in the {place} of {task.key}: {error}; quote with shlex.quote")

    def test_task_keys_name_their_content(self) -> None:
        """Tasks of one key are equal, because runs share the result of the first one."""
        found: dict[str, Task] = {}
        for run, task in self._tasks(PATHS):
            other = found.setdefault(task.key, task)
            if _content(other) != _content(task):
                fail(
                    f"{describe(run)}: two different tasks have the key {task.key}, so that the second one would never "
                    "start; name in the key what the work depends on, for example with content_key()"
                )

    def test_checks_fail_before_the_work(self) -> None:
        """The check of a task fails in an empty folder: else llmb never starts the work."""
        with tempfile.TemporaryDirectory() as folder:
            for run, task in self._tasks(Paths(run=f"{folder}/run", cache=f"{folder}/cache")):
                bash = ["bash", "-c", task.check]
                try:
                    done = subprocess.run(bash, capture_output=True, check=False, timeout=CHECK_S)
                except subprocess.TimeoutExpired:
                    fail(
                        f"{describe(run)}: the check of {task.key} takes more than {CHECK_S} s; check its result alone"
                    )
                if done.returncode == 0:
                    fail(f"{describe(run)}: the check of {task.key} succeeds in an empty folder; check its result")

    def _tasks(self, paths: Paths) -> Iterator[tuple[Run[Any], Task]]:
        """Yield the tasks of one run of each recipe, and of the same run with each value of an option."""
        first = {spec.run.recipe: (tables, spec) for tables, spec in reversed(self.specs)}
        for tables, spec in first.values():
            options = [(name, value) for name, values in choices(self.plugin.options) for value in values]
            runs = [spec.run, *(self.load(with_key(tables, f"framework.{name}", value)) for name, value in options)]
            for run in filter(None, runs):
                built = self.call_hooks_or_none(attrs.evolve(run, paths=paths))
                for task in built.dataset.tasks if built and built.dataset else ():
                    yield run, task


def _content(task: Task) -> tuple[Job | str, str]:
    """Return what decides the result of a task. Name, directory, time limit and secrets of a job do not."""
    work = task.work
    if isinstance(work, Job):
        environment = attrs.evolve(work.environment, secrets=())
        work = attrs.evolve(work, id="task", directory="/task", time_limit_s=1, environment=environment)
    return work, task.check
