"""Planted errors: each fails its test of `FrameworkContract` with a message for the author, and no other test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
from parts.contract_failures import find_failures, names_of

import llmb
from llmb import PluginWarning
from llmb.testing import FrameworkContract, task_checks
from llmb.testing.task_checks import TaskContract as JobTests

PLUGIN = """
import os, re, shlex, subprocess, sys, time
import attrs
from llmb import *

PATTERN = re.compile(rb"step (\\d{1,9}): loss (\\d{1,9}\\.\\d{1,9}), took (\\d{1,9}\\.\\d{1,9}) s!")

@attrs.frozen(kw_only=True)
class Options:
    args: tuple[str, ...] = ()

class Log(LineParser):
    needles = (b" took ",)
    first_step = 0

    def read_line(self, line):
        if found := PATTERN.search(line):
            yield Step(step=int(found[1]), loss=float(found[2]), time_s=float(found[3]))

class Plugin(FrameworkHooks[Options]):
    options = Options

    @hookimpl
    def prepare_env(self, run):
        return Environment(base=run.image)

    @hookimpl
    def build_job(self, run):
        degrees, model = attrs.asdict(run.parallelism), attrs.asdict(run.model)
        script = f"cd {shlex.quote(run.paths.run)} && exec python train.py"
        if run.profile:
            raise SpecError(Fault(message="no profiler", key="profile"))
        command = ("bash", "-c", script, f"{degrees} {model} {run.steps} {run.options.args}")
        return run.job((Phase(name="train", command=command),), env={"MODE": "x"})

    @hookimpl
    def parse_log(self, run):
        return Log()
"""

RECIPE = """
release = "1"
description = "for tests"
source = "https://example.com"
flop_formula = "full"
window = "last"
steps = 10
time_limit = "1h"
[model]
layers = 4
hidden = 1024
ffn = 4096
heads = 16
query_groups = 16
vocab = 32000
seq_len = 2048
[[points]]
gpu_type = "h100"
dtype = "bf16"
gpus = 8
global_batch_size = 96
[[baselines]]
gpu_type = "h100"
dtype = "bf16"
gpus = 8
step_time_s = 0.5
"""

STEPS = "".join(f"step {number}: loss {9 - number / 10:.3f}, took 0.50{number} s!\n" for number in range(10))
LOG = f"started\nreading data: it took long\n{STEPS}done\n"
EXPECTED = """status = "complete"
steps = 10
first = 0
last = 9
last_time_s = 0.509
last_loss = 8.1
mean_step_time_s = 0.509
"""

COSTLY = {"test_import_is_light"}
"""Tests that run for their own errors and for the plugin without an error."""

FACADE = "framework plugin 'odd' (llmb-odd 1.2.3)"


@attrs.frozen
class Planted:
    """An error: the test that fails, the replaced text and its replacement in a file, and a part of the message."""

    test: str
    title: str
    old: str
    new: str
    message: str
    file: str = "plugin"


def job(test: str, title: str, new: str, message: str) -> Planted:
    """Return an error in the lines before the job is returned."""
    return Planted(test, title, "        return run.job(", f"        {new}\n        return run.job(", message)


END = "        return Log()\n"
DIAGNOSE = f"{END}\n    @hookimpl\n    def diagnose(self):\n        return [Signature(cause='c', {{}})]\n"
"""The end of the plugin, and with the hook diagnose()."""

DATASET = f"""{END}
    @hookimpl
    def prepare_dataset(self, run):
        folder = shlex.quote(run.paths.cache)
        first = Task(key="a", kind="words", work="mkdir -p " + folder, check="test -s " + folder + "/a")
        return Dataset(tasks=({{}}))
"""
"""The end of the plugin, and with the hook prepare_dataset()."""

ENV = 'env={"MODE": "x"}'
PLANTED = [
    Planted("implements_its_hooks", "a renamed argument", "def build_job(self, run)", "def build_job(self, spec)",
            f"{FACADE}: does not match the hooks of llmb {llmb.VERSION}: build_job() requires spec"),
    Planted("implements_its_hooks", "an unmarked hook", "    @hookimpl\n    def parse_log", "    def parse_log",
            "parse_log() is not marked with @hookimpl"),
    Planted("implements_its_hooks", "an option without a default", "args: tuple[str, ...] = ()", "args: str",
            "option args has no default"),
    Planted("import_is_light", "a large package", "import attrs", "import attrs, numpy",
            "importing llmb_odd imports numpy, which delays every llmb command; import numpy in the function"),
    Planted("recipes_are_valid", "a misspelt key", "steps = 10", "stpes = 10", "stpes", "recipe"),
    Planted("published_points_build_jobs", "three tasks", "return run.job(",
            "return attrs.evolve(run.job(", "1 node with 3 tasks has 3 ranks, but the run has 8 GPUs; use run.job()"),
    Planted("published_points_build_jobs", "another time limit", "return run.job(", "return attrs.evolve(run.job(",
            "the job's time limit is 60 s, but the run's is 3600 s"),
    Planted("published_points_build_jobs", "a file elsewhere", ENV, f'{ENV}, files={{"/opt/x": "y"}}',
            "Job.files writes /opt/x"),
    Planted("published_points_build_jobs", "a number in env", '"MODE": "x"', '"MODE": 1', "invalid value 1"),
    Planted("published_points_build_jobs", "nothing is measured", "command=command)",
            "command=command, measured=False)",
            "no phase is measured"),
    Planted("published_points_build_jobs", "a part of a node", "gpus = 8", "gpus = 12", "12", "recipe"),
    job("building_is_pure", "a file", 'open("/dev/full", "w").close()', "opened '/dev/full' for writing"),
    job("building_is_pure", "a process", 'subprocess.run(["true"])', "called subprocess.Popen 'true'"),
    job("building_is_pure", "the environment", 'os.environ["PLANTED"] = "1"', "called os.putenv 'PLANTED'"),
    Planted("building_is_pure", "the time", '"MODE": "x"', '"MODE": str(int(time.time()) // 3600)', "at another time"),
    Planted("building_is_pure", "the home", '"MODE": "x"', '"MODE": os.path.expanduser("~")',
            "in another environment or at another time"),
    Planted("is_scheduler_neutral", "a variable of Slurm", "exec python", "echo $SLURM_PROCID && exec python",
            "reads SLURM_PROCID, which other schedulers do not set; use LLMB_RANK"),
    Planted("paths_are_quoted", "an unquoted path", "{shlex.quote(run.paths.run)}", "{run.paths.run}",
            "invalid bash in phase train: "),
    Planted("secrets_stay_out_of_jobs", "a token in env", '"MODE": "x"', '"HF_TOKEN": "abc"',
            "HF_TOKEN is in env; list it in Environment.secrets"),
    Planted("secrets_stay_out_of_jobs", "the value of a token", '"MODE": "x"', '"MODE": os.environ.get("HF_TOKEN", "")',
            "the value of a secret is in the job"),
    job("invalid_runs_raise_spec_errors", "a division by zero", "1 / (run.parallelism.tp - 2)",
        "reject the value with a SpecError for the key parallelism.tp"),
    job("options_take_effect_or_are_rejected", "an ignored degree", 'del degrees["tp"]; command = (*command[:3], '
        'f"{degrees} {model} {run.steps}")', "tp = 2 does not change the job; use the value or reject it"),
    Planted("options_take_effect_or_are_rejected", "ignored steps", " {run.steps} ", " ",
            "workload.steps = 20 does not change the job; use the value or reject it"),
    Planted("options_take_effect_or_are_rejected", "an ignored image", "base=run.image", "",
            "workload.image = registry.example/contract:1.0 does not change the job"),
    Planted("options_take_effect_or_are_rejected", "an ignored profile", "if run.profile:", "if False:",
            "profile.tool = nsys does not change the job"),
    Planted("options_take_effect_or_are_rejected", "an unused option", "args: tuple[str, ...] = ()",
            "fast: bool = False\n    args: tuple[str, ...] = ()", "option fast changes no job"),
    Planted("options_take_effect_or_are_rejected", "an unused number", "args: tuple[str, ...] = ()",
            "rate: PositiveFloat | None = None\n    args: tuple[str, ...] = ()", "option rate changes no job"),
    Planted("options_take_effect_or_are_rejected", "an unused option of two types", "args: tuple[str, ...] = ()",
            "level: bool | int = 1\n    args: tuple[str, ...] = ()",
            "option level changes no job of the published configurations (values tried: false, 2, 3); use"),
    Planted("tasks_are_quoted", "an unquoted path", END,
            DATASET.format('attrs.evolve(first, check="test -s " + run.paths.cache),'),
            "invalid bash in the check of a: "),
    Planted("task_keys_name_their_content", "one key for two tasks", END,
            DATASET.format('first, attrs.evolve(first, work="true")'), "two different tasks have the key a, so that"),
    Planted("task_keys_name_their_content", "one key for two mounts", END,
            DATASET.format("*(attrs.evolve(first, work=attrs.evolve(run.job((Phase(name='words', command=('true',)),)),"
                           " mounts=(Mount(source=each, target='/data'),))) for each in ('/a', '/b')),"),
            "two different tasks have the key a, so that"),
    Planted("checks_fail_before_the_work", "a check of nothing", END,
            DATASET.format('attrs.evolve(first, check="true"),'),
            "the check of a succeeds in an empty folder; check its result"),
    Planted("metrics_are_plausible", "a baseline of 4 ms", "step_time_s = 0.5", "step_time_s = 4e-3",
            "is impossible; check the model, the global batch and the formula", "recipe"),
    Planted("golden_logs_parse", "milliseconds", "time_s=float(found[3])", "time_s=float(found[3]) / 1000",
            "the result differs from a.expected.toml"),
    Planted("golden_logs_parse", "a missing needle", 'b" took "', 'b"needed"',
            "the result differs from a.expected.toml"),
    Planted("causes_can_be_read", "a pattern without a group", END, DIAGNOSE.format('needle="odd: ", detail="x"'),
            "diagnose() failed: ValueError: invalid Signature.detail 'x'"),
    Planted("complete_logs_have_no_cause", "a word of each log", END, DIAGNOSE.format('needle="reading"'),
            "a.log is the log of a complete run, but contains 'reading' of the cause 'c'"),
    Planted("missing_steps_are_explained", "the second line", END,
            f"{END}\n    @hookimpl\n    def explain_missing_steps(self, lines):\n        return lines[1]\n",
            "; the lines are []"),
    Planted("chunking_does_not_matter", "a lost rest", "class Plugin(",
            "class Cut(Log):\n    def feed(self, block, source=''):\n        return [each"
            " for line in block.split(b'\\n') for each in self.read_line(line)]\n"
            "    def close(self):\n        return []\n\nclass Plugin(",
            "steps differ if the log is cut at ["),
    Planted("truncation_never_raises", "missing digits", ") s!\")", ")\")",
            "digits are missing; override read_torn_line()"),
    Planted("garbled_logs_never_raise", "arbitrary text", "class Plugin(",
            "class Odd(Log):\n    def read_line(self, line):\n        parts = line.split()\n"
            "        if b'took' in parts and parts[0] == b'step' and line.endswith(b's!'):\n"
            "            yield Step(step=int(parts[1][:-1]), loss=float(parts[3][:-1]), time_s=float(parts[5]))\n\n"
            "class Plugin(",
            "the line is b'"),
    Planted("parsers_are_independent", "one parser for all", "class Plugin(", "SHARED = Log()\n\nclass Plugin(",
            "parse_log() must return a new parser for each log"),
    Planted("parsing_is_fast", "a needle of every line", "class Plugin(",
            "class Slow(Log):\n    needles = (b'e',)\n\nclass Plugin(",
            "function calls for each line without a step (at most 5); choose needles that occur only in step lines"),
    Planted("long_lines_cost_linear_time", "a pattern that backtracks", "class Plugin(",
            "class Slow(Log):\n    def read_line(self, line):\n        re.search(rb'step.*took.*s.*!', line)\n"
            "        yield from super().read_line(line)\n\nclass Plugin(", "because a pattern backtracks"),
    Planted("long_lines_cost_linear_time", "a parser that fails for long lines", "class Plugin(",
            "class Short(Log):\n    def read_line(self, line):\n        assert len(line) < 9999\n"
            "        yield from super().read_line(line)\n\nclass Plugin(", "AssertionError"),
]  # fmt: skip

CLOSING = {
    "three tasks": "tasks_per_node=3)",
    "another time limit": "time_limit_s=60)",
}
"""The rest of an ``attrs.evolve`` that a planted error begins."""

CLASSES = {"a lost rest": "Cut", "arbitrary text": "Odd", "a needle of every line": "Slow"}
CLASSES |= {"a pattern that backtracks": "Slow", "a parser that fails for long lines": "Short"}
"""The parsers that planted errors add."""


def sources(planted: Planted) -> dict[str, str]:
    """Return plugin and recipe with the error."""
    files = {"plugin": PLUGIN, "recipe": RECIPE}
    assert planted.old in files[planted.file], planted.title
    files[planted.file] = files[planted.file].replace(planted.old, planted.new)
    if closing := CLOSING.get(planted.title):
        files["plugin"] = files["plugin"].replace(f"{ENV})", f"{ENV}), {closing}")
    if parser := CLASSES.get(planted.title):
        files["plugin"] = files["plugin"].replace("        return Log()", f"        return {parser}()")
    if planted.title == "one parser for all":
        files["plugin"] = files["plugin"].replace("        return Log()", "        return SHARED")
    return files


def contract(folder: Path) -> FrameworkContract:
    """Return the contract tests of the plugin ``odd``, with a log."""
    (folder / "a.log").write_text(LOG)
    (folder / "a.expected.toml").write_text(EXPECTED)

    class TestOdd(FrameworkContract):
        framework = "odd"
        logs = [folder / "a.log"]  # type: ignore[assignment]  # noqa: RUF012

    return TestOdd()


def install(site: Any, files: dict[str, str], distribution: str = "llmb-odd") -> None:
    package = distribution.replace("-", "_")
    site.install(
        distribution,
        files={f"{package}/__init__.py": files["plugin"], f"{package}/recipes/tiny.toml": files["recipe"]},
        entry_points={"llmb.frameworks": {"odd": f"{package}:Plugin"}},
    )


def test_a_wheel_without_recipes_is_a_warning(active_site: Any, tmp_path: Path) -> None:
    install(active_site, {"plugin": PLUGIN, "recipe": RECIPE})
    (active_site.folder / "llmb_odd/recipes/tiny.toml").unlink()
    tests = contract(tmp_path)
    with pytest.warns(
        PluginWarning, match=r"^llmb-odd 1\.2\.3 has no recipe of odd, so no test builds a job; check whether the wheel"
    ):
        tests.test_recipes_are_valid()
    tests.test_options_take_effect_or_are_rejected()


def test_a_correct_plugin_passes(active_site: Any, tmp_path: Path) -> None:
    install(active_site, {"plugin": PLUGIN, "recipe": RECIPE})
    assert find_failures(contract(tmp_path)) == {}


SLOW = "a pattern that backtracks"  # until its time is over


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(each, marks=pytest.mark.slow if each.title == SLOW else (), id=f"{each.test}-{each.title}")
        for each in PLANTED
    ],
)
def test_a_planted_error_fails_its_test_and_no_other(active_site: Any, tmp_path: Path, planted: Planted) -> None:
    install(active_site, sources(planted))
    tests = contract(tmp_path)
    of_jobs = {name for name in dir(JobTests) if name.startswith("test_")}
    is_of_jobs = f"test_{planted.test}" in of_jobs
    others = {name for name in dir(tests) if name.startswith("test_") and (name in of_jobs) != is_of_jobs}
    found = find_failures(tests, names_of(tests) - ((COSTLY | others) - {f"test_{planted.test}"}))
    assert set(found) == {planted.test}, found
    assert planted.message in found[planted.test]


def test_an_invalid_peak_is_one_line(active_site: Any, tmp_path: Path) -> None:
    hook = f"{END}\n    @hookimpl\n    def peak_flops(self, gpu_type, dtype):\n        return 100.0\n"
    recipe = RECIPE.replace('"h100"', '"cpu"').replace('"bf16"', '"fp32"')
    install(active_site, {"plugin": PLUGIN.replace(END, hook), "recipe": recipe})
    with pytest.raises(pytest.fail.Exception) as caught:
        contract(tmp_path).test_metrics_are_plausible()
    assert str(caught.value).startswith(f"odd/tiny (cpu fp32, 8 GPUs): {FACADE}: peak_flops() returned 100")


def test_a_check_that_does_not_end_is_an_error(
    active_site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_checks, "CHECK_S", 0.1)
    dataset = DATASET.format('attrs.evolve(first, check="exec sleep 60"),')
    install(active_site, {"plugin": PLUGIN.replace(END, dataset), "recipe": RECIPE})
    with pytest.raises(pytest.fail.Exception, match=r"the check of a takes more than 0\.1 s"):
        contract(tmp_path).test_checks_fail_before_the_work()


def test_two_distributions_of_one_name_are_an_error(active_site: Any, tmp_path: Path) -> None:
    for distribution in ("llmb-odd", "llmb-odd2"):
        install(active_site, {"plugin": PLUGIN, "recipe": RECIPE}, distribution)
    with pytest.raises(pytest.fail.Exception, match=r"is provided by llmb-odd 1\.2\.3 and llmb-odd2 1\.2\.3"):
        contract(tmp_path).test_implements_its_hooks()


def test_a_variable_of_a_scheduler_may_be_set(active_site: Any, tmp_path: Path) -> None:
    new = "export SLURM_PROCID=$LLMB_RANK; echo $SLURM_PROCID; exec python"
    install(active_site, {"plugin": PLUGIN.replace("exec python", new), "recipe": RECIPE})
    tests = contract(tmp_path)
    assert find_failures(tests, ["test_is_scheduler_neutral"]) == {}


def test_a_framework_without_logs_is_asked_for_one(active_site: Any, tmp_path: Path) -> None:
    install(active_site, {"plugin": PLUGIN, "recipe": RECIPE})

    class TestOdd(FrameworkContract):
        framework = "odd"

    with pytest.raises(
        pytest.fail.Exception, match=r"no log in .*/core/tests/testing/logs; add the log of a short run"
    ):
        TestOdd().test_golden_logs_parse()


def test_expected_results_are_written_on_request(
    active_site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(active_site, {"plugin": PLUGIN, "recipe": RECIPE})
    tests = contract(tmp_path)
    (tmp_path / "a.expected.toml").unlink()
    with pytest.raises(pytest.fail.Exception, match=r"a.expected.toml is missing; run the test with LLMB_UPDATE=1"):
        tests.test_golden_logs_parse()
    monkeypatch.setenv("LLMB_UPDATE", "1")
    tests.test_golden_logs_parse()
    assert (tmp_path / "a.expected.toml").read_text() == EXPECTED
