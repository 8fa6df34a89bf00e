"""Contract tests of the scripts that a scheduler builds."""

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar
from unittest.mock import patch

from llmb.testing.bash_text import bash_errors
from llmb.testing.golden_logs import UPDATE
from llmb.testing.job_checks import CANARY, another_day
from llmb.testing.plugin_checks import errors_fail_the_test, fail
from llmb.testing.scheduler_jobs import SchedulerJobs, example_job
from llmb.testing.side_effects import recorded_effects
from llmb.values.environment import Environment, Image, Venv
from llmb.values.errors import LlmbError, SpecError
from llmb.values.frozen import FrozenMap
from llmb.values.job import Job, Script
from llmb.values.secret_names import SECRET_VARIABLE

LAUNCHERS = re.compile(r"\b(torchrun|deepspeed|accelerate launch|torch\.distributed\.run)\b")
"""Launchers of frameworks."""

IMAGE = Image(ref="registry.example/trainer:1.0")
VENV = Venv(lock="one==1\n", python=">=3.11")


class ScriptContract(SchedulerJobs):
    """Tests of scripts, which need no cluster."""

    golden_jobs: ClassVar[Mapping[str, tuple[Job, Mapping[str, Any]]]] = FrozenMap()
    """Further jobs whose scripts have golden files: by name, a job and keys of [target]."""

    def test_implements_its_hooks(self) -> None:
        """The plugin matches the hooks of its kind, exists once, and builds a script for a simple job."""
        with errors_fail_the_test():
            self.load_plugin()
            self.build(example_job())

    def test_building_is_pure(self) -> None:
        """build_job() only returns a script: it writes nothing, starts nothing, and uses no time or environment."""
        with recorded_effects() as effects:
            first = self.script()
        if effects:
            fail(f"a hook {effects[0]}; hooks only return values: use Script.files")
        with another_day():
            second = self.script()
        if first != second:
            fail("the script differs in another environment or at another time; hooks only return values")

    def test_scripts_match_golden_files(self) -> None:
        """Each script is the one in golden/NAME.sh. ``LLMB_UPDATE=1`` writes the files."""
        folder = self.folder / "golden"
        scripts = dict(self._scripts())
        for name, script in scripts.items():
            file = folder / f"{name}.sh"
            if os.environ.get(UPDATE):
                folder.mkdir(exist_ok=True)
                file.write_text(script.text)
            if not file.exists():
                fail(f"golden/{file.name} is missing; run the test with {UPDATE}=1, and read the file")
            lines = file.read_text().splitlines(), script.text.splitlines()
            if changes := list(difflib.unified_diff(*lines, f"golden/{file.name}", "the script", lineterm="")):
                fail("\n".join([*changes, f"if the change is intended, run the test with {UPDATE}=1"]))
        if unknown := sorted({file.stem for file in folder.glob("*.sh")} - set(scripts)):
            fail(f"golden/{unknown[0]}.sh belongs to no job of golden_jobs; remove it")

    def test_scripts_are_valid_bash(self) -> None:
        """Bash accepts each script, and the files beside it that are scripts."""
        for name, script in self._scripts():
            files = {each: text for each, text in script.files.items() if each.endswith("sh")}
            for place, text in {f"the script of {name}": script.text, **files}.items():
                if error := bash_errors(text):
                    fail(f"invalid bash in {place}: {error}; quote values with shlex.quote")

    def _scripts(self) -> Iterator[tuple[str, Script]]:
        """Yield the script of each job that has a golden file."""
        yield "example", self.script()
        for name, (job, keys) in self.golden_jobs.items():
            try:
                yield name, self.build(job, self.target_of(job, **keys))
            except LlmbError as error:
                fail(f"golden_jobs: {name}: {error}")

    def test_is_framework_neutral(self) -> None:
        """The script starts no launcher of a framework: the framework's command does."""
        if found := LAUNCHERS.search(self.script().text):
            fail(f"the script contains {found[1]}, which belongs to frameworks; start the words of Phase.command")

    def test_phases_have_separate_logs(self) -> None:
        """Each phase has logs of its own, and each attempt of the job too."""
        logs = self.script().logs
        names = [log.rpartition("/")[2] for each in logs.values() for log in each]
        for name in names:
            if names.count(name) > 1:
                fail(f"several logs are named {name}; each phase needs a log of its own")
        for phase in example_job().phases:
            for log in logs.get(phase.name, ()) or fail(f"Script.logs lacks phase {phase.name}"):
                if "{attempt}" not in log:
                    fail(f"the log {log} is the same for each attempt of the job; add {{attempt}} to its name")

    def test_environments_are_used_or_rejected(self) -> None:
        """A job with an image runs in a container, or is rejected."""
        if self._is_ignored(example_job(environment=Environment(base=IMAGE))):
            fail("an image does not change the script: the job would run outside the container; use it or reject it")

    def test_virtual_environments_are_used_or_rejected(self) -> None:
        """A job with a virtual environment runs in it after a task created it, or is rejected."""
        job = example_job(environment=Environment(base=VENV))
        try:
            tasks = self.plugin.prepare_env(environment=job.environment, target=self.target_of(job))
            found = self.build(job)
        except SpecError:
            return
        if not tasks:
            fail("no task creates a virtual environment; return venv_task() in prepare_env(), or reject it")
        if found == self.script():
            fail("a virtual environment does not change the script; pass venv_folder() to environment_function()")

    def test_mpi_is_used_or_rejected(self) -> None:
        """A job that needs an MPI launcher gets it, or is rejected."""
        if self._is_ignored(example_job(mpi="pmix")):
            fail("mpi = pmix does not change the script: the ranks would not find each other; use it or reject it")

    def _is_ignored(self, job: Job) -> bool:
        """Check whether the scheduler accepts a job and builds the script of the example job."""
        with suppress(SpecError):
            return self.build(job) == self.script()
        return False

    def check_secrets_of_script(self) -> None:
        """Fail the test if a secret is in a script: llmb places secrets in a file beside it."""
        job = example_job(environment=Environment(secrets=("HF_TOKEN",)))
        with patch.dict(os.environ, {"HF_TOKEN": CANARY}):
            script = self.script(job)
        if CANARY in str(script):
            fail("the value of HF_TOKEN is in the script; read it with read_secrets of job_functions()")
        for name in re.findall(r"^export (\w+)=\S+", script.text, re.MULTILINE):
            if SECRET_VARIABLE.search(name):
                fail(f"the script sets {name}; read it with read_secrets of job_functions()")
