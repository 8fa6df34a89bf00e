"""Timers of all ranks in one log: which rank is slow."""

from __future__ import annotations

from pathlib import Path

import pytest

import llmb
from llmb_megatron_bridge.log import MegatronLog

HEADER = b" [2026-11-01 10:00:00] iteration %8d/%8d | elapsed time per iteration (ms): 2000.0 | lm loss: 1.0E+00 | "
END = b"number of skipped iterations:   0 | number of nan iterations:   0 |\n"


def timers(name: bytes, times_ms: list[float]) -> bytes:
    return b"  %b:\n" % name + b"".join(b"     rank %2d: %.2f\n" % (rank, ms) for rank, ms in enumerate(times_ms))


def step(number: int, forward_ms: list[float], backward_ms: list[float], label: bytes = b"") -> bytes:
    waiting = timers(b"forward-backward", [1900.0] * len(forward_ms))
    compute = timers(b"forward-compute", forward_ms) + timers(b"backward-compute", backward_ms)
    other = timers(b"batch-generator", [3.0 * rank for rank in range(len(forward_ms))])
    text = HEADER % (number, 20) + END + b"times across ranks (ms):\n" + waiting + compute + other
    return b"".join(label + line + b"\n" for line in text.splitlines())


def slow_log(label: bytes = b"") -> bytes:
    """Return the log of 20 steps on 8 ranks, of which rank 5 computes 8 % longer."""
    forward = [600.0 + (48.0 if rank == 5 else rank % 3) for rank in range(8)]
    backward = [1200.0 + (96.0 if rank == 5 else rank % 2) for rank in range(8)]
    return b"".join(step(number, forward, backward, label) for number in range(1, 21))


@pytest.mark.parametrize("label", [b"", b"[default7]:", b"15: "])
@pytest.mark.parametrize("size", [100, 1 << 20])
def test_a_slow_rank_is_named_from_the_timers_of_one_log(tmp_path: Path, label: bytes, size: int) -> None:
    (log := tmp_path / "run.log").write_bytes(slow_log(label))
    found = llmb.parse(log, framework="megatron_bridge").rank_times
    assert found is not None
    assert (found.ranks, [each.rank for each in found.slow_ranks]) == (8, [5])
    assert found.slow_ranks[0].excess == pytest.approx(0.08, abs=2e-3)
    assert found.slow_ranks[0].step_time_s == pytest.approx(1.944)
    parser = MegatronLog()
    text = slow_log(label)
    fed = [item for at in range(0, len(text), size) for item in parser.feed(text[at : at + size])]
    steps = [each for each in (*fed, *parser.close()) if isinstance(each, llmb.Step)]
    assert {each.step for each in steps if len(each.rank_times) == 8} == set(range(1, 21))


def test_the_smallest_and_the_largest_time_name_no_rank(tmp_path: Path) -> None:
    text = b"(min, max) time across ranks (ms):\n    forward-compute ....: (600.00, 648.00)\n"
    (log := tmp_path / "run.log").write_bytes(b"".join(HEADER % (n, 20) + END + text for n in range(1, 21)))
    parsed = llmb.parse(log, framework="megatron_bridge")
    assert (parsed.rank_times, len(parsed.steps), parsed.status) == (None, 20, "complete")


@pytest.mark.parametrize(
    "timer",
    [
        b"(min, max) time across ranks (ms):\n    save-checkpoint ......: (23683.77, 23684.20)\n",
        b"max time across ranks (ms):\n    save-checkpoint ......: 23684.20\n",
        b"  saved to /c [ t 1/1 ] (min, max) time across ranks (ms): save-checkpoint ......: (23683.77, 23684.20)\n",
    ],
)
def test_the_time_of_each_checkpoint_is_known(tmp_path: Path, timer: bytes) -> None:
    (log := tmp_path / "run.log").write_bytes(
        b"".join(HEADER % (n, 20) + END + timer * (n % 10 == 0) for n in range(1, 21))
    )
    parsed = llmb.parse(log, framework="megatron_bridge")
    assert (parsed.series.checkpoints_s, len(parsed.steps)) == (pytest.approx(2 * 23.6842), 20)
