"""Values that cross between core and plugins cannot be changed, whatever they were constructed from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_origin, get_type_hints

import attrs
import pytest

import llmb

PHASE = {"name": "train", "command": ["bash", "train.sh"], "env": {"A": "1"}, "outputs": ["/j/report"]}
JOB = {"id": "j", "directory": "/j", "nodes": 1, "tasks_per_node": 1, "gpus_per_node": 0, "time_limit_s": 60}
VALUES = [
    kind
    for kind in (getattr(llmb, name) for name in llmb.__all__)
    if attrs.has(kind) and ".values." in kind.__module__ and kind is not llmb.Step  # parsers make one for each line
]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (llmb.Job, JOB | {"phases": [llmb.Phase(**PHASE)], "mounts": [llmb.Mount(source="/a", target="/b")]}),
        (llmb.Environment, {"secrets": ["HF_TOKEN"], "repositories": []}),
        (llmb.Script, {"id": "s", "directory": "/s", "text": "", "logs": {"train": ["/s/a.log"]}}),
        (llmb.Accelerator, {"name": "npu", "gpus_per_node": 8, "dtypes": ["bf16"], "peak_flops": {"bf16": 1e15}}),
        (llmb.LogFiles, {"training": ["*.log"]}),
        (llmb.Profile, {"tool": "nsys", "ranks": [0, 1]}),
        (llmb.SourceMap, {"places": {"workload.gpus": (None, "workload.gpus[1]")}}),
        (llmb.Nsys, {"command": ["nsys"]}),
    ],
    ids=lambda case: getattr(case, "__name__", "given"),
)
def test_lists_and_tables_given_to_a_value_cannot_be_changed_in_it(kind: Any, fields: dict[str, Any]) -> None:
    value, same = kind(**fields), kind(**fields)
    for given in fields.values():
        if isinstance(given, list | dict):
            given.clear()
    assert value == same
    assert hash(value) == hash(same)
    assert kind(**{name: getattr(value, name) for name in fields}) == value


def test_frozen_tables_are_put_together_as_dicts_are() -> None:
    own: llmb.FrozenMap[str, int] = llmb.FrozenMap({"a": 1, "b": 1})
    assert (own | {"b": 2}, {"b": 2} | own) == ({"a": 1, "b": 2}, {"a": 1, "b": 1})
    assert all(isinstance(each, llmb.FrozenMap) for each in (own | {}, {} | own, own | own))
    with pytest.raises(TypeError):
        own | [("b", 2)]  # type: ignore[operator]  # that is what is tested


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_no_value_keeps_a_sequence_or_a_table_as_it_was_given(kind: Any) -> None:
    hints = get_type_hints(kind)
    kept = [field.name for field in attrs.fields(kind) if not field.converter]
    assert [name for name in kept if get_origin(hints[name]) in (tuple, Mapping)] == []
