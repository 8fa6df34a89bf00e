"""Order of errors in several logs, by the times of their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.failures.choose_cause import diagnose
from llmb.logs.timestamps import seconds_between

MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"


@pytest.mark.parametrize(
    ("memory", "ecc", "cause"),
    [
        ("2026-01-01 00:00:02,1 ", "2025-12-31 23:59:58,1 ", "a GPU has a hardware error"),
        ("2025-12-31 23:59:58 ", "2026-01-01T00:00:02 ", "the accelerator is out of memory"),
        ("2025/11/22 10:00:02 ", "E1122 10:00:01.500 ", "a GPU has a hardware error"),
        ("E1122 10:00:01.500 ", "2025/11/22 10:00:02 ", "the accelerator is out of memory"),
        ("E0101 00:00:02.000 ", "E1231 23:59:58.000 ", "a GPU has a hardware error"),
        ("E1231 23:59:58.000 ", "2026-01-01 00:00:02 ", "the accelerator is out of memory"),
    ],
    ids=["new year", "old year", "no year in the first", "no year in the second", "no years", "no old year"],
)
def test_of_several_logs_the_error_with_the_earliest_time_is_the_cause(
    tmp_path: Path, memory: str, ecc: str, cause: str
) -> None:
    logs = [tmp_path / "rank0.log", tmp_path / "rank1.log"]
    logs[0].write_text(f"{memory}{MEMORY}\n")
    logs[1].write_text(f"{ecc}{ECC}\n")

    found = diagnose(logs)

    assert found is not None
    assert found.cause.startswith(cause)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2026-06-30 23:59:58", "2026-07-01T00:00:03"),
        ("2026-02-28 23:59:58", "2026-03-01T00:00:03"),
        ("E0430 23:59:58.000 1 agent.cc:3] ", "2026-05-01T00:00:03"),
        ("2025-12-31 23:59:58", "2026-01-01T00:00:03"),
        ("E1231 23:59:58.000 1 agent.cc:3] ", "2026-01-01T00:00:03"),
        ("2024-02-29 23:59:58", "2024-03-01T00:00:03"),
    ],
)
def test_seconds_count_on_at_the_end_of_a_month(before: str, after: str) -> None:
    first, second = (f"rank 3: {each}: lost".encode() for each in (before, after))
    assert seconds_between(first, second) == 5
    assert seconds_between(second, first) == -5


@pytest.mark.parametrize("line", [b"lost", b"2026-13-01 00:00:03: lost", b"2026-00-01 00:00:03: lost"])
def test_a_line_without_a_possible_time_has_no_distance_to_another(line: bytes) -> None:
    assert seconds_between(line, b"2026-01-01 00:00:03: lost") is None
