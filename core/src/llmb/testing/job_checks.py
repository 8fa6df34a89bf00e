"""Contract tests of a framework's recipes and jobs."""

import os
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar
from unittest.mock import patch

import attrs
import pytest

from llmb.analysis.valid_range import STEP_TIME_S, is_plausible, possible
from llmb.judging.measure_point import measure_point
from llmb.plan_runs import plan_run
from llmb.plugins.recipe_files import addresses_of
from llmb.plugins.registry import PluginRegistry
from llmb.spec.decode import required_options
from llmb.testing.baseline_checks import describe_point
from llmb.testing.bash_text import bash_errors, scheduler_variables
from llmb.testing.plugin_checks import PluginContract, errors_fail_the_test, fail
from llmb.testing.sample_runs import HookResults, Tables, build, describe, load_run, sample_tables
from llmb.testing.side_effects import recorded_effects
from llmb.values.errors import Fault, LlmbError, PluginWarning, collect_errors
from llmb.values.job import Job
from llmb.values.recipe import Baseline, Point, Recipe
from llmb.values.run import Paths, Run
from llmb.values.secret_names import SECRET_VARIABLE
from llmb.values.texts.error_text import counted
from llmb.values.workload import RunSpec

HOSTILE = Paths(run='/w/it\'s a "run" $HOME', cache="/w/it's a cache")
"""Paths that are valid, and that only quoting keeps together."""

CANARY = "canary-of-a-secret"


class JobContract(PluginContract):
    """Tests of the recipes and the jobs of a framework."""

    kind = "framework"
    _specs: ClassVar[list[tuple[Tables, RunSpec]]]

    @property
    def specs(self) -> list[tuple[Tables, RunSpec]]:
        """Published configurations, spread over each recipe, that core accepts, each with its spec."""
        cls = type(self)
        if "_specs" not in vars(cls):
            cls._specs = []
            for tables in sample_tables(self.recipes()):
                with suppress(LlmbError):  # test_published_points_build_jobs reports it
                    cls._specs.append((tables, load_run(self.registry, tables)))
        return cls._specs

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the plugin's own recipes."""
        return addresses_of([each for each in self.registry.installed if each.name == self.plugin_name])

    def recipes(self) -> Iterator[Recipe]:
        """Yield the valid recipes of the framework."""
        for address in self.addresses:
            with suppress(LlmbError):  # test_recipes_are_valid reports it
                yield self.registry.recipe(address)

    def call_hooks_or_none(self, run: Run[Any]) -> HookResults | None:
        """Return the values of the hooks for a run, or None if the framework rejects the run or a hook fails."""
        with suppress(LlmbError):
            return build(self.registry, run)
        return None

    def builds(self) -> Iterator[HookResults]:
        """Yield the values of the hooks for the runs of `specs`. A run whose hooks fail is left out."""
        yield from filter(None, (self.call_hooks_or_none(spec.run) for _, spec in self.specs))

    def test_implements_its_hooks(self) -> None:
        """The plugin matches the hooks of its kind, exists once, and every option has a default."""
        with errors_fail_the_test():
            plugin = self.load_plugin()
        for name in required_options(plugin.options):
            fail(f"option {name} has no default; every option of [framework] needs one")

    def test_recipes_are_valid(self) -> None:
        """Every recipe file can be read."""
        errors: list[Fault] = []
        for address in addresses_of([self.entry]):
            with collect_errors(errors, LlmbError):
                self.registry.recipe(address)
        if errors:
            fail("\n".join(map(str, errors)))
        if not self.addresses:
            message = f"{self.entry.provider} has no recipe of {self.plugin_name}, so no test builds a job"
            warnings.warn(PluginWarning(f"{message}; check whether the wheel contains recipes/*.toml"), stacklevel=2)

    def test_published_points_build_jobs(self) -> None:
        """Every published configuration gives a job with one rank for each GPU, its time limit and a measured phase."""
        if required_options(self.plugin.options):
            pytest.skip("an option has no default; see test_implements_its_hooks")
        check_jobs(self.registry, self.recipes())

    def test_building_is_pure(self) -> None:
        """Hooks only return values: they open no file for writing, start no process, and use no time or environment."""
        for _, spec in self.specs[:1]:
            with recorded_effects() as effects:
                first = self.call_hooks_or_none(spec.run)
            if effects:
                fail(f"a hook {effects[0]}; hooks only return values: use a Task, a Phase or Job.files")
            with another_day():
                second = self.call_hooks_or_none(spec.run)
            if first != second:
                fail(
                    "the job differs in another environment or at another time; hooks only return values that "
                    f"follow from the run: {_difference(first, second)}"
                )

    def test_is_scheduler_neutral(self) -> None:
        """Jobs read no variable that only one scheduler or launcher sets."""
        for built in self.builds():
            for text in _texts(built.job):
                if found := scheduler_variables(text):
                    fail(
                        f"{describe(built.run)}: reads {found[0]}, which other schedulers do not set; "
                        "use LLMB_RANK and the other LLMB_ variables"
                    )

    def test_paths_are_quoted(self) -> None:
        """Bash of a job stays valid if a path contains quotes and blanks."""
        checked = set[str]()
        runs = {spec.run.recipe: attrs.evolve(spec.run, paths=HOSTILE) for _, spec in self.specs}
        for built in filter(None, map(self.call_hooks_or_none, runs.values())):
            for name, text in _bash_texts(built.job):
                if text in checked or len(checked) > MAX_TEXTS:
                    continue
                checked.add(text)
                if error := bash_errors(text):
                    fail(f"{describe(built.run)}: invalid bash in {name}: {error}; quote with shlex.quote")

    def test_secrets_stay_out_of_jobs(self) -> None:
        """No job contains a secret: llmb gives the job the secrets that Environment.secrets names."""
        for built in self.builds():
            with patch.dict(os.environ, dict.fromkeys((*built.environment.secrets, "HF_TOKEN"), CANARY)):
                job = self.call_hooks_or_none(built.run)
            envs = [built.job.env, *(phase.env for phase in built.job.phases)]
            names = [name for env in envs for name in env if SECRET_VARIABLE.search(name)]
            if names:
                fail(f"{describe(built.run)}: {names[0]} is in env; list it in Environment.secrets")
            if CANARY in str(job):
                fail(f"{describe(built.run)}: the value of a secret is in the job; list it in Environment.secrets")

    def test_metrics_are_plausible(self) -> None:
        """No baseline gives an MFU above 100 %."""
        check_mfus(self.registry, self.recipes())


MAX_TEXTS = 20

MAX_DIFFERENCE = 2
"""The ratio of two MFUs that other peaks and formulas explain, and a fraction instead of a percentage does not."""


def check_jobs(registry: PluginRegistry, recipes: Iterable[Recipe]) -> None:
    """Fail the test unless each recipe gives jobs with one rank for each GPU, its time limit and a measured phase."""
    for tables in sample_tables(recipes):
        try:
            spec = load_run(registry, tables)
            registry.check_settings(spec.run.framework, spec.run.recipe)
            plan = plan_run(spec, registry)
        except LlmbError as error:
            fail("\n".join(f"{tables['workload']}: {each}" for each in error.faults))
        for problem in _job_problems(plan.job, spec.run):
            fail(f"{describe(spec.run)}: {problem}")


def check_mfus(registry: PluginRegistry, recipes: Iterable[Recipe]) -> None:
    """Fail the test if a step time or the MFU of a baseline is impossible, or not the published MFU."""
    for recipe in recipes:
        for point in recipe.points:
            if not point.baseline:
                continue
            try:
                problem = _mfu_problem(registry, recipe, point, point.baseline)
            except LlmbError as error:  # of the plugin
                problem = str(error)
            if problem:
                fail(f"{describe_point(recipe.address, point)}: {problem}")


def _mfu_problem(registry: PluginRegistry, recipe: Recipe, point: Point, baseline: Baseline) -> str:
    """Return why the MFU of a baseline is impossible, or "". A note explains a difference from the published MFU."""
    step_time_s = baseline.step_time_s
    if possible(step_time_s, STEP_TIME_S) is None:
        return f"a step time of {step_time_s:g} s is impossible; check the unit of the baseline"
    mfu = measure_point(recipe, point, registry, step_time_s).mfu_computed
    if mfu is None:
        return ""
    if not 0 < mfu <= 1:
        return f"MFU of {mfu:.2f} is impossible; check the model, the global batch and the formula"
    if not is_plausible(mfu, step_time_s):
        return f"MFU of {mfu:.1g} is implausible; check the unit of the baseline"
    if baseline.mfu and not baseline.note and not 1 / MAX_DIFFERENCE < baseline.mfu / mfu < MAX_DIFFERENCE:
        return (
            f"mfu_percent = {100 * baseline.mfu:g}, but {100 * mfu:.1f} % follow from the step time; "
            "check the unit, or explain the difference in notes"
        )
    return ""


def _job_problems(job: Job, run: Run[Any]) -> Iterator[str]:
    ranks = job.nodes * job.tasks_per_node
    if ranks != run.gpus:
        nodes = counted(job.nodes, "node")
        yield (
            f"{nodes} with {job.tasks_per_node} tasks {'have' if job.nodes > 1 else 'has'} {ranks} ranks, "
            f"but the run has {run.gpus} GPUs; use run.job()"
        )
    if job.time_limit_s != run.time_limit_s:
        yield f"the job's time limit is {job.time_limit_s} s, but the run's is {run.time_limit_s} s; use run.job()"
    for path in job.files:
        if not path.startswith((f"{run.paths.run}/", f"{run.paths.cache}/")):
            yield f"Job.files writes {path}; write files below run.paths.run"


def _texts(job: Job) -> list[str]:
    """Return every text of a job in which a program may read a variable."""
    phases = [word for phase in job.phases for word in (*phase.command, *phase.env.values())]
    return [*phases, *job.env.values(), *job.files.values()]


def _bash_texts(job: Job) -> Iterator[tuple[str, str]]:
    """Yield the bash scripts of a job, each with its place: words after ``bash -c``, and files."""
    for phase in job.phases:
        words = phase.command
        for shell, option, text in zip(words, words[1:], words[2:], strict=False):
            if shell.rpartition("/")[2] in ("bash", "sh") and option in ("-c", "-lc", "-ec", "-euc"):
                yield f"phase {phase.name}", text
    for path, text in job.files.items():
        if path.endswith((".sh", ".bash")) or text.startswith(("#!/bin/bash", "#!/usr/bin/env bash", "#!/bin/sh")):
            yield path.rpartition("/")[2], text


@contextmanager
def another_day() -> Iterator[None]:
    """Change the home, the user and the clock of this process."""
    clock, clock_ns = time.time, time.time_ns
    with (
        patch.dict(os.environ, {"HOME": "/another/home", "USER": "another", "LOGNAME": "another"}),
        patch.object(time, "time", lambda: clock() + 86_400),
        patch.object(time, "time_ns", lambda: clock_ns() + 86_400 * 10**9),
    ):
        yield


def _difference(first: HookResults | None, second: HookResults | None) -> str:
    """Return the first word in which two jobs differ."""
    texts = [[str(each)] if each is None else _texts(each.job) for each in (first, second)]
    pairs = [(one, other) for one, other in zip(*texts, strict=False) if one != other]
    return f"{pairs[0][0][:80]!r} and {pairs[0][1][:80]!r}" if pairs else "their environment or dataset"
