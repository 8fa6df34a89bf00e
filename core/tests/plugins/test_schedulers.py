"""Scheduler plugins as pip leaves them: what one lacks, or answers wrongly, is told before a run is lost by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb
from llmb.cli.views.recipes import workload_toml

WORKLOAD = {"recipe": "maxtext/llama2-tiny", "gpu_type": "cpu", "dtype": "fp32", "gpus": 1}
BEGIN = """
import attrs
from llmb import JobStatus, SchedulerHooks, Script, SpecError, JobHandle, hookimpl
from llmb import cancel_detached, poll_detached, submit_detached

@attrs.frozen
class Options:
    nodes: tuple[str, ...] = ()

class Plugin(SchedulerHooks[Options]):
    options = Options
    single_node = True
    poll_interval_s = (0.01, 0.02)
"""
HOOKS = {
    "build_job(self, job)": 'return Script(id=job.id, directory=job.directory, text="exit 3")',
    "submit(self, scripts, host)": "return submit_detached(scripts, host)",
    "poll(self, tickets, host)": "return poll_detached(tickets, host)",
    "cancel(self, tickets, host)": "return cancel_detached(tickets, host)",
}
HEAD_NODE = {
    "host(self, target)": "return target.options.nodes[0]",
    "build_job(self, job, target)": 'return Script(id=job.id, directory=job.directory, text=f"on {target.host}")',
}


def install(site: Any, hooks: dict[str, str], name: str = "odd") -> None:
    """Install a scheduler plugin whose hooks are these, and the usual ones where these have none of the name."""
    names = {hook.partition("(")[0] for hook in hooks}
    hooks = {hook: body for hook, body in HOOKS.items() if hook.partition("(")[0] not in names} | hooks
    methods = [f"    @hookimpl\n    def {hook}:\n        {body}\n" for hook, body in hooks.items() if body]
    code = BEGIN.replace("= ()", "" if "host(self, target)" in hooks else "= ()") + "\n".join(methods)
    entry_points = {"llmb.schedulers": {name: f"llmb_{name}:Plugin"}}
    site.install(f"llmb-{name}", files={f"llmb_{name}.py": code}, entry_points=entry_points)


@pytest.fixture
def odd_spec(tmp_path: Path) -> Path:
    """A spec that goes to the plugin of the test."""
    file = tmp_path / "odd.toml"
    file.write_text(tomli_w.dumps({"workload": WORKLOAD, "target": {"scheduler": "odd"}}))
    return file


def one_line(done: Any) -> str:
    """The last line on standard error, of a command that ended with 2."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    return str(done.stderr.splitlines()[-1])


@pytest.mark.parametrize("command", [["validate"], ["run", "--dry-run"], ["run"]])
def test_a_scheduler_that_could_not_cancel_is_refused_before_anything_is_recorded(
    site: Any, run_llmb: Any, odd_spec: Path, command: list[str]
) -> None:
    install(site, {"submit(self, scripts, host)": "", "cancel(self, tickets, host)": ""})
    told = (
        f"llmb-odd 1.2.3 does not fit llmb {llmb.VERSION}: it does not implement submit(); "
        "it does not implement cancel()"
    )
    assert one_line(run_llmb(*command, odd_spec)) == f"llmb: {odd_spec}: target.scheduler: {told}"
    assert run_llmb.json("runs")["runs"] == []
    assert [each["error"] for each in run_llmb.json("plugins")["plugins"] if each["name"] == "odd"] == [told]


@pytest.mark.parametrize(
    ("hook", "body", "told"),
    [
        ("host(self)", "return 3", "host() returned int, where str | None is due"),
        ("prepare_env(self)", "return 'abc'", "prepare_env() returned str, where tuple[Task, ...] is due"),
        ("build_job(self)", "return 'exit 0'", "build_job() returned str, where Script is due"),
        ("probe(self)", "return ['true']", "probe() returned list, where str is due"),
        ("submit(self)", "return []", "submit() returned list, where Mapping[str, JobHandle] is due"),
        (
            "submit(self, scripts)",
            "return {each.id: each.id for each in scripts}",
            "submit() returned dict with str in it, where Mapping[str, JobHandle] is due",
        ),
        ("submit(self)", "return {}", "submit() returned nothing for {run}"),
        ("poll(self)", "return {'x': JobStatus(state='running')}", "poll() returned nothing for {run}"),
        ("parse_log(self)", "return 'x'", "parse_log() returned str, where LogParser | None is due"),
    ],
)
def test_an_answer_that_is_not_what_is_due_is_one_line(
    site: Any, run_llmb: Any, odd_spec: Path, hook: str, body: str, told: str
) -> None:
    install(site, {hook: body})
    line = one_line(run_llmb("run", odd_spec))
    [*_, run] = [each["run_id"] for each in run_llmb.json("runs")["runs"]] or [""]
    assert f"llmb-odd 1.2.3: {told.replace('{run}', run)}" in line


def test_a_list_does_where_a_tuple_is_due(site: Any, run_llmb: Any, odd_spec: Path) -> None:
    install(site, {"prepare_env(self)": "return []"})
    assert run_llmb("validate", odd_spec).returncode == 0


@pytest.mark.parametrize(
    ("hook", "body", "state", "told"),
    [
        ("poll(self)", "return {}", "queued", "llmb-odd 1.2.3: poll() returned nothing for"),
        ("submit(self)", "raise SpecError('no such queue')", "submitting", "no such queue"),
        (
            "poll(self, tickets)",
            "return {each.id: JobStatus(state='queued') for each in tickets}",
            "queued",
            "llmb-odd 1.2.3: in poll(), JobStatus.state is 'queued', where one of 'absent', 'unknown', 'pending', "
            "'running', 'ended' is due",
        ),
    ],
)
def test_runs_elsewhere_go_on_when_a_scheduler_answers_wrongly(
    site: Any, run_llmb: Any, odd_spec: Path, hook: str, body: str, state: str, told: str
) -> None:
    install(site, {hook: body})
    install(site, {}, name="even")
    odd_spec.write_text(tomli_w.dumps({"workload": WORKLOAD, "sweep": {"target.scheduler": ["odd", "even"]}}))
    done = run_llmb("run", odd_spec)
    line = done.stderr.splitlines()[-1]
    assert done.returncode == 1  # a run that failed counts for more
    assert told in line
    states = {each["run_id"]: each["state"] for each in run_llmb.json("runs")["runs"]}
    assert sorted(states.values()) == sorted(["failed", state])
    [going] = [run for run, each in states.items() if each == state]
    assert f"`llmb attach {going}` goes on" in line


def test_a_bug_of_one_scheduler_keeps_its_traceback_and_the_runs_elsewhere_go_on(
    site: Any, run_llmb: Any, odd_spec: Path
) -> None:
    install(site, {"submit(self)": "1 / 0"})
    install(site, {}, name="even")
    odd_spec.write_text(tomli_w.dumps({"workload": WORKLOAD, "sweep": {"target.scheduler": ["odd", "even"]}}))
    with pytest.raises(ZeroDivisionError) as raised:
        run_llmb("run", odd_spec)
    assert raised.value.__notes__ == ["in submit() of llmb-odd 1.2.3"]
    assert sorted(each["state"] for each in run_llmb.json("runs")["runs"]) == ["failed", "submitting"]


def test_a_scheduler_says_through_which_machine_its_target_is_reached(site: Any, run_llmb: Any, tmp_path: Path) -> None:
    install(site, HEAD_NODE)
    file = tmp_path / "nodes.toml"

    def write_target(**target: Any) -> None:
        file.write_text(tomli_w.dumps({"workload": WORKLOAD, "target": {"scheduler": "odd", **target}}))

    write_target(nodes=["first", "second"], workdir="/shared")
    [run] = run_llmb.json("run", file, "--dry-run")["runs"]
    assert run["script"] == "on first"
    write_target(nodes=["first", "second"])
    assert one_line(run_llmb("validate", file)) == (
        f"llmb: {file}: target.workdir: is missing; expected a directory of first that all its nodes share"
    )
    write_target(nodes=["no host"], workdir="/shared")
    assert 'target.host: is "no host"' in one_line(run_llmb("validate", file))
    write_target(workdir="/shared")
    assert "target.nodes: is missing; expected a list" in one_line(run_llmb("validate", file))


def test_a_recipe_is_printed_for_a_scheduler_that_needs_no_key_of_its_own(site: Any, run_llmb: Any) -> None:
    install(site, HEAD_NODE, name="abacus")
    told = run_llmb("recipes", "maxtext/llama2-tiny", "--toml").stdout
    assert '\nscheduler = "local" # or ' in told
    assert '"abacus"' in told


def test_where_all_that_fit_need_a_key_it_is_named() -> None:
    schedulers = {"hosts": {"nodes": "a list, each a string"}, "local": {}}
    told = workload_toml(llmb.load_recipe("maxtext/llama2-70b"), schedulers)
    assert '\nscheduler = "hosts" # or "local"\n# nodes = ... # needed: a list, each a string\n' in told
