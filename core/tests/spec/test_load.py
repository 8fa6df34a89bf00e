"""``llmb.load`` and ``llmb.loads``: a spec from a file, from tables or from text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import llmb

TEXT = """
[workload]
recipe = "maxtext/llama2-tiny"
gpu_type = "cpu"
dtype = "fp32"
gpus = [1, 2]

[target]
scheduler = "local"
"""
TABLES = {
    "workload": {"recipe": "maxtext/llama2-tiny", "gpu_type": "cpu", "dtype": "fp32", "gpus": (1, 2)},
    "target": llmb.FrozenMap({"scheduler": "local"}),
}


def test_a_file_text_and_tables_give_the_same_runs(tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    file.write_text(TEXT)
    of_file, of_text, of_tables = llmb.load(file), llmb.loads(f"\ufeff{TEXT}"), llmb.load(TABLES)
    assert [each.run for each in of_file.runs] == [each.run for each in of_text.runs]
    assert [each.run for each in of_file.runs] == [each.run for each in of_tables.runs]
    assert (of_file.file, of_text.file, of_tables.file) == (str(file), None, None)
    assert llmb.load(str(file)).runs == of_file.runs


@pytest.mark.parametrize("load", [lambda **more: llmb.load(TABLES, **more), lambda **more: llmb.loads(TEXT, **more)])
def test_overrides_and_a_target_apply_to_tables_and_text_too(load: Any, write_targets: Any) -> None:
    write_targets('[box]\nscheduler = "local"\nworkdir = "/box"\n')
    [placed] = load(overrides="workload.gpus=2", target="box").runs
    assert (placed.run.gpus, placed.target.workdir) == (2, "/box")
    assert len(load().runs) == 2


def test_an_error_in_tables_or_text_names_the_key_alone() -> None:
    for load in (lambda: llmb.load({**TABLES, "modle": {}}), lambda: llmb.loads(TEXT + "[modle]\n")):
        with pytest.raises(llmb.SpecError) as raised:
            load()
        [error] = raised.value.faults
        assert (error.file, error.key) == (None, "modle")
        assert str(error).startswith("modle: ")


@pytest.mark.parametrize("name", ["workload", "worklod.toml"])
def test_a_missing_file_names_the_nearest_one(tmp_path: Path, name: str) -> None:
    for existing in ("workload.toml", "other.toml"):
        (tmp_path / existing).touch()
    with pytest.raises(llmb.SpecError) as raised:
        llmb.load(tmp_path / name)
    assert [error.nearest for error in raised.value.faults] == [str(tmp_path / "workload.toml")]


def test_a_string_is_a_path_and_never_text() -> None:
    with pytest.raises(llmb.SpecError, match="no such file"):
        llmb.load("workload.gpus = 1")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the spec is empty; expected at least a [workload] and a [target] table"),
        ("a = ", "invalid TOML: Invalid value (at end of document)"),
        ("a = " + "[" * 5000, "invalid TOML: nested too deeply"),
    ],
)
def test_text_that_is_no_spec_is_one_line(text: str, line: str) -> None:
    with pytest.raises(llmb.SpecError) as raised:
        llmb.loads(text)
    assert str(raised.value) == line


def test_a_key_that_is_no_string_is_one_line() -> None:
    with pytest.raises(llmb.SpecError) as raised:
        llmb.load({**TABLES, "env": {1: "x"}})
    assert str(raised.value) == "invalid key 1; expected a string"
