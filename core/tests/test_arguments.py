"""Wrong types of the arguments of public functions."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import llmb
from llmb.drive.session import Session
from llmb.hosts.host_connections import HostConnections

ONE: Any = 1
SESSION: Any = Session([], [], HostConnections())
NAMES: Any = ["a"]
TABLE: Any = {"workload.gpus": 2}
WORKLOADS: Any = [llmb.Workload.__new__(llmb.Workload)]
POINT = {"recipe": "maxtext/llama2-tiny", "gpu_type": "cpu", "dtype": "fp32"}
WORKLOAD = 'expected Workload, such as llmb.load("spec.toml")'


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: llmb.run("a.toml"), f'run(): workload: "a.toml" is of type str; {WORKLOAD}'),
        (lambda: llmb.start({"workload": POINT}), f"start(): workload: {{...}} is of type dict; {WORKLOAD}"),
        (lambda: llmb.plan(None), f"plan(): workload: None; {WORKLOAD}"),
        (lambda: llmb.doctor(workload="a.toml"), WORKLOAD),
        (lambda: llmb.load(3), "load(): spec: 3 is of type int; expected str or Path or Mapping[str, Any]"),
        (
            lambda: llmb.load({}, overrides=[ONE]),
            "overrides: [1] is of type list; expected str or a list of str",
        ),
        (
            lambda: llmb.load({}, overrides=TABLE),
            "overrides: {...} is of type dict; expected str or a list of str",
        ),
        (lambda: llmb.loads(Path("a.toml")), "loads(): text: a.toml is of type PosixPath; expected str"),
        (lambda: llmb.compare(["a"], "b"), 'compare(): a: ["a"] is of type list; expected str'),
        (lambda: llmb.parse_paths("a.log"), "expected a list of str or Path, such as ['a.log']"),
        (lambda: llmb.parse("a", window="1:2"), "\"1:2\" is of type str; expected 'last' or tuple[int, int] or None"),
        (lambda: llmb.grade("a", gpus="1", **POINT), 'grade(): gpus: "1" is of type str; expected int'),
        (lambda: llmb.grade("a", gpus=True, **POINT), "grade(): gpus: true is of type bool; expected int"),
        (lambda: llmb.find_run(3), "find_run(): run_id: 3 is of type int; expected str"),
        (
            lambda: llmb.cancel("abc"),
            "cancel(): runs: \"abc\" is of type str; expected a list of str, such as ['abc']",
        ),
        (
            lambda: llmb.run(WORKLOADS[0], until="finished"),
            "run(): until: invalid value \"finished\"; expected 'ended' or 'submitted'",
        ),
        (lambda: SESSION.wait(until="submited"), 'wait(): until: invalid value "submited"; expected'),
        (lambda: SESSION.events(until="submited"), 'events(): until: invalid value "submited"; expected'),
        (lambda: SESSION.async_events(until="x"), 'async_events(): until: invalid value "x"; expected'),
        (
            lambda: llmb.json_schema("x"),
            "json_schema(): kind: invalid value \"x\"; expected 'spec' or 'targets file' or 'recipe' or 'framework ",
        ),
        (
            lambda: llmb.new_plugin("x", "frame", Path()),
            "new_plugin(): kind: invalid value \"frame\"; expected 'declared' or",
        ),
        (lambda: llmb.new_plugin("x", "pack", "folder"), 'into: "folder" is of type str; expected Path'),
        (lambda: llmb.load_recipe(ONE), "load_recipe(): address: 1 is of type int; expected str"),
        (lambda: llmb.fold_hosts("node1"), "expected a list of str, such as ['node1']"),
        (lambda: llmb.sort_gpu_types("h100"), "expected a list of str, such as ['h100']"),
        (lambda: llmb.sort_dtypes("bf16"), "expected a list of str, such as ['bf16']"),
        (lambda: llmb.fold_releases(NAMES), 'recipes: ["a"] is of type list; expected a list of Recipe'),
        (lambda: llmb.find_repeats(NAMES), 'results: ["a"] is of type list; expected a list of RunResult'),
        (lambda: llmb.judge_sets(NAMES), 'results: ["a"] is of type list; expected a list of RunResult'),
        (lambda: llmb.read_reported_runs(NAMES), 'results: ["a"] is of type list; expected a list of RunResult'),
        (lambda: llmb.read_steps_text(ONE), "directory: 1 is of type int; expected str or Path"),
        (lambda: llmb.junit_xml("abc"), 'expected Report, such as llmb.report("RUN")'),
        (lambda: llmb.runs_csv("abc"), "expected a list of ReportedRun"),
        (lambda: llmb.load(*[]), "load() missing 1 required positional argument: 'spec'"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named_with_what_to_pass_instead(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("gpus", [0, -1, 10**12])
def test_an_impossible_number_of_gpus_is_an_error_of_llmb(tmp_path: Path, gpus: int) -> None:
    recipe, log = tmp_path / "mine.toml", tmp_path / "a.log"
    keys = 'steps = 3\nseq_len = 8\nparams = 1e6\nglobal_batch_size = 8\ndtypes = ["fp32"]\n'
    recipe.write_text(f'command = ["true"]\nlog.line = "step {{step}}: {{time_s}} s"\n[recipe]\n{keys}')
    log.write_text("step 1: 0.5 s\n")
    point: Any = {"gpu_type": "cpu", "dtype": "fp32", "gpus": gpus}
    for call in (
        lambda: llmb.metrics(str(recipe), step_time_s=1.0, **point),
        lambda: llmb.grade(log, recipe=str(recipe), **point),
        lambda: llmb.parse(log, recipe=str(recipe), gpus=gpus),
    ):
        with pytest.raises(llmb.RecipeError, match=f"^gpus: invalid value {gpus}; expected an integer from 1 to "):
            call()


def test_a_negative_limit_is_an_error_of_llmb() -> None:
    with pytest.raises(llmb.SpecError, match=r"^limit: invalid value -1; expected an integer of at least 0$"):
        llmb.find_runs(limit=-1)


def test_the_directory_of_a_result_is_that_of_its_steps(tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text("step\n1\n")
    result = llmb.RunResult.from_dict({"run_id": "a", "directory": str(tmp_path)})
    assert llmb.read_steps_text(result.directory) == "step\n1\n"
