"""The units of step times in [log]: a text with another unit than the name is an error, not a wrong result."""

from __future__ import annotations

from typing import Any

import pytest

from llmb.plugins.declared.framework_tables import LogTable
from llmb.plugins.declared.log_format import compile_format
from llmb.values.types.check_types import decode


def errors_of(log: dict[str, Any]) -> str:
    table, _ = decode(log, LogTable, "log")
    assert table
    return "\n".join(map(str, compile_format(table)[1]))


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("iter {step}: time {time_s}ms", "log.line: '{time_s}ms' has two units; expected {time_ms}"),
        ("iter {step}: time {time_s} ms", "log.line: '{time_s} ms' has two units; expected {time_ms}"),
        ("iter {step}: time {time_ms}us", "expected {time_us}"),
        ("iter {step}: time {time_ms} s/it", "expected {time_s}"),
        ("iter {step}: {time_s}min", "expected {time_min}"),
        ("iter {step} | time (ms): {time_s} | loss", "log.line: '(ms): {time_s}' has two units; expected {time_ms}"),
        ("step_ms={time_s} loss", "expected {time_ms}"),
    ],
)
def test_a_step_time_beside_the_unit_of_another_name_is_an_error(line: str, error: str) -> None:
    assert error in errors_of({"line": line})


def test_a_field_whose_key_ends_with_another_unit_is_an_error() -> None:
    found = errors_of({"fields": {"where": "loss", "time_s": "step_time_ms"}})
    assert found == "log.fields.time_s: '_ms{time_s}' has two units; expected {time_ms}"


@pytest.mark.parametrize(
    "line",
    [
        "time {time_s} min {least} max {most}",
        "step_min={time_s} ok",
        "time (ms): {time_ms} ms",
        "fwd: {fwd} ms, all: {time_s} s",
        "fwd {fwd} (ms) ... all {time_s}",
        "time {time_s}, ms {fwd}",
    ],
)
def test_other_words_beside_a_step_time_are_not_its_unit(line: str) -> None:
    assert errors_of({"line": f"at {line}"}) == ""
