"""The contract of a scheduler plugin, as far as it can be checked without a cluster."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import pytest

from llmb.testing.bash_text import bash_errors
from llmb.testing.job_checks import CANARY, another_day, environment
from llmb.testing.plugin_checks import PluginContract, fail
from llmb.testing.purity import recorded_effects
from llmb.values.environment import Environment, Image
from llmb.values.errors import LlmbError, SpecError
from llmb.values.frozen import FrozenMap
from llmb.values.job import Job, Phase, Script
from llmb.values.run import Target
from llmb.values.typed import decode
from llmb.values.variable_names import SECRET_VARIABLE

DIRECTORY = "/w/runs/contract"

LAUNCHERS = re.compile(r"\b(torchrun|deepspeed|accelerate launch|torch\.distributed\.run)\b")
"""Launchers of frameworks."""

IMAGE = Image(ref="registry.example/trainer:1.0")


def example_job(**changes: Any) -> Job:
    """Return a job with two phases on one node."""
    phases = (
        Phase(name="prepare", command=("true",), ranks="first", measured=False, outputs=(f"{DIRECTORY}/data",)),
        Phase(name="train", command=("python", "train.py", "a b'c\"d $HOME"), env={"WORDS": "a b'c\"d $HOME"}),
    )
    job = Job(
        id="contract",
        directory=DIRECTORY,
        phases=phases,
        nodes=1,
        tasks_per_node=2,
        gpus_per_node=2,
        env={"MODE": "it's"},
        time_limit_s=600,
    )
    return attrs.evolve(job, **changes)


class SchedulerContract(PluginContract):
    """Tests that every scheduler passes. Set ``scheduler`` to its name, and ``target`` to its required keys."""

    kind = "scheduler"
    scheduler: str
    target: ClassVar[Mapping[str, Any]] = FrozenMap()

    def build(self, job: Job) -> Script:
        """Call the hooks that come before the submission, and return the script. Raise SpecError or PluginError."""
        plugin = self.plugin
        options, errors = decode(dict(self.target), plugin.options, "target")
        if options is None:
            raise SpecError(*errors)
        target = Target(scheduler=self.plugin_name, workdir="/w", options=options, gpus_per_node=job.tasks_per_node)
        plugin.prepare_env(environment=job.environment, target=target)
        script: Script = plugin.build_job(job=job, target=target)
        return script

    def script(self, job: Job | None = None) -> Script:
        """Return the script of a job. Skip the test if the hook fails."""
        try:
            return self.build(job or example_job())
        except LlmbError:
            pytest.skip("the hook build_job() fails; see test_implements_its_hooks")

    def test_implements_its_hooks(self) -> None:
        """The plugin matches the hooks of its kind, exists once, and builds a script for a simple job."""
        try:
            self.load_plugin()
            self.build(example_job())
        except LlmbError as error:
            fail(str(error))

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

    def test_scripts_are_valid_bash(self) -> None:
        """Bash accepts the script, and the files beside it that are scripts."""
        script = self.script()
        texts = {
            "the script": script.text,
            **{each: text for each, text in script.files.items() if each.endswith("sh")},
        }
        for name, text in texts.items():
            if error := bash_errors(text):
                fail(f"invalid bash in {name}: {error}; quote values with shlex.quote")

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
        with_image = example_job(environment=Environment(base=IMAGE))
        try:
            found = self.build(with_image)
        except SpecError:
            return
        if found == self.script():
            fail("an image does not change the script: the job would run outside the container; use it or reject it")

    def test_secrets_stay_out_of_scripts(self) -> None:
        """No secret is in a script: llmb places them in a file beside it."""
        job = example_job(environment=Environment(secrets=("HF_TOKEN",)))
        with environment({"HF_TOKEN": CANARY}):
            script = self.script(job)
        if CANARY in str(script):
            fail("the value of HF_TOKEN is in the script; read it with read_secrets of job_functions()")
        for name in re.findall(r"^export (\w+)=\S+", script.text, re.MULTILINE):
            if SECRET_VARIABLE.search(name):
                fail(f"the script sets {name}; read it with read_secrets of job_functions()")
