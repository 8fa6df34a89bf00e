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
        (lambda: llmb.loads(Path("a.toml")), "loads(): text: a.toml is of type PosixPath; expected str"),
        (lambda: llmb.compare(["a"], "b"), 'compare(): a: ["a"] is of type list; expected str'),
        (lambda: llmb.parse_paths("a.log"), "expected a list of str or Path, such as ['a.log']"),
        (lambda: llmb.parse("a", window="1:2"), "\"1:2\" is of type str; expected 'last' or tuple[int, int] or None"),
        (lambda: llmb.grade("a", gpus="1", **POINT), 'grade(): gpus: "1" is of type str; expected int'),
        (lambda: llmb.grade("a", gpus=True, **POINT), "grade(): gpus: true is of type bool; expected int"),
        (lambda: llmb.find_run(3), "find_run(): wanted: 3 is of type int; expected str"),
        (
            lambda: llmb.cancel("abc"),
            "cancel(): wanted: \"abc\" is of type str; expected a list of str, such as ['abc']",
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
            "json_schema(): kind: invalid value \"x\"; expected 'spec' or 'recipe' or 'framework file'",
        ),
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
