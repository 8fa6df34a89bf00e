"""What frameworks refuse in the same words, whatever syntax their trainers' settings have."""

from __future__ import annotations

import pytest

from llmb import forbid_key, forbid_options

DECIDED = {"train.steps": "workload.steps", "mesh": "[parallelism]", "run_name": ""}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("train.steps", "llmb sets this key; expected workload.steps instead"),
        ("mesh.tp", "llmb sets this key; expected [parallelism] instead"),
        ("run_name", "llmb sets this key; remove it"),
        (
            "train",
            "this table contains train.steps, which llmb sets; expected its other keys one by one",
        ),
        ("train steps", "invalid key; expected names with dots between them, without blanks"),
    ],
)
def test_a_setting_that_the_spec_decides_is_refused_at_its_key(name: str, told: str) -> None:
    assert [*map(str, forbid_options([name, "train.lr"], DECIDED))] == [f"framework.config.{name}: {told}"]
    [fault] = forbid_options([name], DECIDED, table="framework.arguments")
    assert fault.key == f"framework.arguments.{name}"


def test_what_stands_before_a_setting_is_its_trainers_own_affair() -> None:
    fault = forbid_key("mesh.tp", DECIDED, key="framework.config.+mesh.tp")
    assert fault is not None
    assert fault.key == "framework.config.+mesh.tp"
    assert forbid_key("+mesh.tp", DECIDED, key="framework.config.+mesh.tp") is None
