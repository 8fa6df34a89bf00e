"""Scheduler plugins: errors are reported before a run is lost by them, and runs of other schedulers continue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import llmb

OneLine = Callable[[Any], str]


def hook(signature: str, body: str) -> str:
    return f"@hookimpl\ndef {signature}: {body}"


@pytest.mark.parametrize("command", [["validate"], ["run", "--dry-run"], ["run"]])
def test_a_scheduler_without_cancel_is_rejected_before_anything_is_recorded(
    plugins: Any, run_llmb: Any, one_line: OneLine, command: list[str]
) -> None:
    plugins.install("framework", name="plain")
    plugins.install("scheduler", "del submit, cancel", after="Plugin.__abstractmethods__ = frozenset()")
    error = (
        f"scheduler plugin 'odd' (llmb-odd 1.2.3): does not match the hooks of llmb {llmb.VERSION}: "
        "submit() is missing; cancel() is missing"
    )
    file = plugins.spec(framework="plain", scheduler="odd")
    assert one_line(run_llmb(*command, file)) == f"{file}: target.scheduler: {error}"
    assert run_llmb.json("runs")["runs"] == []
    assert [each["error"] for each in run_llmb.json("plugins")["plugins"] if each["name"] == "odd"] == [error]


@pytest.mark.parametrize("result", ["[]", "iter(())"])
def test_any_iterable_is_accepted_as_a_tuple(plugins: Any, run_llmb: Any, result: str) -> None:
    plugins.install("framework", name="plain")
    plugins.install("scheduler", hook("prepare_env(self)", f"return {result}"))
    assert run_llmb("validate", plugins.spec(framework="plain", scheduler="odd")).returncode == 0


@pytest.mark.parametrize(
    ("members", "state", "error"),
    [
        (hook("poll(self)", "return {}"), "queued", "poll() returned nothing for"),
        (hook("poll(self)", "1 / 0"), "queued", "poll() failed: ZeroDivisionError: division by zero"),
        (hook("submit(self)", "1 / 0"), "submitting", "submit() failed: ZeroDivisionError: division by zero"),
        (hook("submit(self)", "raise SpecError('no such queue')"), "submitting", "no such queue"),
    ],
)
def test_runs_of_other_schedulers_continue_if_one_scheduler_fails(
    plugins: Any, run_llmb: Any, members: str, state: str, error: str
) -> None:
    plugins.install("framework", name="plain")
    plugins.install("scheduler", members)
    plugins.install("scheduler", name="even")
    file = plugins.spec(framework="plain", scheduler="odd")
    sweep = '[sweep]\n"target.scheduler" = ["odd", "even"]\n'
    file.write_text(file.read_text().replace('[target]\nscheduler = "odd"\n', sweep))
    done = run_llmb("run", file)
    line = done.stderr.splitlines()[-1]
    assert done.returncode == 1  # the exit code of the run that failed takes precedence
    assert error in line
    states = {each["run_id"]: each["state"] for each in run_llmb.json("runs")["runs"]}
    assert sorted(states.values()) == sorted(["failed", state])
    [unfinished] = [run for run, each in states.items() if each == state]
    assert f"`llmb attach {unfinished}`" in line


LONG_JOB = """
@hookimpl
def build_job(self, job): return script_of(job, "sleep 600")
"""


@pytest.mark.parametrize("statement", ["yield", "return self and"])
def test_cancel_may_return_anything_and_a_generator_is_run_to_its_end(
    plugins: Any, run_llmb: Any, statement: str
) -> None:
    plugins.install("framework", name="plain")
    plugins.install(
        "scheduler", LONG_JOB + hook("cancel(self, handles, host)", f"{statement} cancel_detached(handles, host)")
    )
    [run] = run_llmb.json("run", plugins.spec(framework="plain", scheduler="odd"), "--detach")["runs"]
    [run] = run_llmb.json("cancel", run["run_id"])["runs"]
    assert run["state"] == "cancelled"


def test_a_scheduler_chooses_the_machine_through_which_its_target_is_reached(
    plugins: Any, run_llmb: Any, one_line: OneLine
) -> None:
    plugins.install("framework", name="plain")
    plugins.install("scheduler", HEAD_NODE, options="nodes: tuple[str, ...]")

    def spec(**target: Any) -> Any:
        return plugins.spec(framework="plain", scheduler="odd", target=target)

    [run] = run_llmb.json("run", spec(nodes=["first", "second"], workdir="/shared"), "--dry-run")["runs"]
    assert run["script"] == "on first"
    file = spec(nodes=["first", "second"])
    assert one_line(run_llmb("validate", file)) == (
        f"{file}: target.workdir: required key is missing; expected a directory on first that all nodes share"
    )
    assert 'target.host: invalid value "no host"' in one_line(
        run_llmb("validate", spec(nodes=["no host"], workdir="/shared"))
    )
    assert "target.nodes: required key is missing; expected a list" in one_line(
        run_llmb("validate", spec(workdir="/shared"))
    )


HEAD_NODE = """
@hookimpl
def host(self, target): return target.options.nodes[0]

@hookimpl
def build_job(self, job, target):
    return script_of(job, f"on {target.host}")
"""


def test_a_recipe_is_printed_for_a_scheduler_without_required_keys(plugins: Any, run_llmb: Any) -> None:
    plugins.install("scheduler", HEAD_NODE, options="nodes: tuple[str, ...]", name="abacus")
    text = run_llmb("recipes", "maxtext/llama2-tiny", "--toml").stdout
    assert '\nscheduler = "local" # or ' in text
    assert '"abacus"' in text


def test_a_starter_workload_names_the_required_keys_of_its_scheduler(
    plugins: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.install("scheduler", HEAD_NODE, options="nodes: tuple[str, ...]", name="abacus")
    monkeypatch.syspath_prepend(plugins.site.folder)
    text = llmb.starter_workload("maxtext/llama2-70b", scheduler="abacus")
    assert '\nscheduler = "abacus" # or ' in text
    assert "\n# nodes = ... # required: a list, each a string\n" in text


LOG_WITH_A_STEP = """
class Log(LineParser):
    needles = (b"step",)

    def read_line(self, line):
        yield Step(step=1, time_s=2.5)
"""
WRONG_PEAK = """
@hookimpl
def build_job(self, job): return script_of(job, f"echo step >{job.directory}/train.log; exit 3")

@hookimpl
def peak_flops(self): return os.environ.get("ODD_PEAK")
"""


def test_a_peak_of_a_wrong_type_is_reported_before_a_run_is_recorded_or_with_its_remedy(
    plugins: Any, run_llmb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = "Accelerator(name='npu9', gpus_per_node=1, dtypes=('bf16',))"
    plugins.install("extension", "@hookimpl\ndef accelerators(self): return [" + gpu + "]", name="gpus")
    plugins.install("framework", hook("parse_log(self)", "return Log()"), name="plain", before=LOG_WITH_A_STEP)
    plugins.install("scheduler", WRONG_PEAK)
    file = plugins.spec(framework="plain", scheduler="odd", workload={"gpu_type": "npu9"})
    error = "scheduler plugin 'odd' (llmb-odd 1.2.3): peak_flops() returned str; expected float | None"
    monkeypatch.setenv("ODD_PEAK", "1e15")
    done = run_llmb("run", file)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"llmb: {error}")
    assert run_llmb.json("runs")["runs"] == []
    monkeypatch.delenv("ODD_PEAK")
    [run] = run_llmb.json("run", file, "--detach")["runs"]
    monkeypatch.setenv("ODD_PEAK", "1e15")
    done = run_llmb("attach", run["run_id"])
    assert done.returncode == 2
    assert f"{error}; fix this, then resume with `llmb attach {run['run_id']}`" in done.stderr
    monkeypatch.delenv("ODD_PEAK")
    assert run_llmb.json("attach", run["run_id"], status=1)["runs"][0]["state"] == "failed"
