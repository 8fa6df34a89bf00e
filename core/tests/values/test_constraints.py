"""Checks that frameworks share, whatever syntax their trainers' settings have."""

from __future__ import annotations

import pytest

from llmb import forbid_key, forbid_options

SET_BY_LLMB = {"train.steps": "workload.steps", "mesh": "[parallelism]", "run_name": ""}


@pytest.mark.parametrize(
    ("name", "message"),
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
def test_a_setting_that_the_spec_decides_is_rejected_at_its_key(name: str, message: str) -> None:
    assert [*map(str, forbid_options([name, "train.lr"], SET_BY_LLMB))] == [f"framework.config.{name}: {message}"]
    [error] = forbid_options([name], SET_BY_LLMB, table="framework.arguments")
    assert error.key == f"framework.arguments.{name}"


def test_a_prefix_of_a_setting_belongs_to_its_trainer() -> None:
    error = forbid_key("mesh.tp", SET_BY_LLMB, key="framework.config.+mesh.tp")
    assert error is not None
    assert error.key == "framework.config.+mesh.tp"
    assert forbid_key("+mesh.tp", SET_BY_LLMB, key="framework.config.+mesh.tp") is None
