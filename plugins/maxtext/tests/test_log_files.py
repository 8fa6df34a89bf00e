"""MaxText's log files: growing, of ranks that print in bursts, and larger than memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import llmb
from llmb import Step
from llmb.analysis.measuring_window import summarise
from llmb.logs.read_blocks import blocks_of
from llmb.logs.steps.step_series import StepSeries
from llmb_maxtext.log import MaxTextLog

GIB, MIB = 1 << 30, 1 << 20


def line(step: int, time_s: float = 2.0) -> bytes:
    return b"completed step: %d, seconds: %.3f, TFLOP/s/device: %.3f, loss: 8.000\n" % (step, time_s, 800 / time_s)


def steps_of(series: StepSeries) -> list[tuple[int, float | None]]:
    return [(step.step, step.time_s) for step in series.steps]


@given(sizes=st.lists(st.integers(0, 200), max_size=40))
def test_a_log_that_grows_while_it_is_read_gives_each_step_once(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    whole = b"noise\r\n" + b"".join(line(step, 1 + step / 8) for step in range(30))
    log = tmp_path_factory.mktemp("log") / "run.log"
    log.touch()
    parser, series, offset, written = MaxTextLog(), StepSeries(), 0, 0
    found: list[Step] = []

    def take(items: object) -> None:
        found.extend(item for item in items if isinstance(item, Step))  # type: ignore[attr-defined]  # an iterable
        series.add(items)  # type: ignore[arg-type]  # as above

    for size in [*sizes, len(whole)]:
        with log.open("ab") as file:
            file.write(whole[written : written + size])
        written = min(len(whole), written + size)
        for block in blocks_of(log, offset):
            take(parser.feed(block))
            offset += len(block)
        assert offset == written
    take(parser.close())

    assert [step.step for step in found] == list(range(30))
    assert steps_of(series) == [(step, 1 + step / 8) for step in range(30)]


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_that_print_in_bursts_give_the_steps_of_one(tmp_path: Path, ranks: int) -> None:
    """Buffered output comes many lines at a time; unlabelled, a rank is then up to a burst ahead of the others.

    The second rank's first burst looks just like a new run, and is taken for one: all its steps come again.
    """
    burst = 8
    chunks = [range(begin, begin + burst) for begin in range(0, 48, burst)]
    printed = [step for chunk in chunks for _ in range(ranks) for step in chunk]
    log = tmp_path / "run.log"
    log.write_bytes(b"".join(line(step) for step in printed))

    assert steps_of(llmb.parse([log], framework="maxtext").series) == [(step, 2.0) for step in range(48)]


@pytest.mark.parametrize("ranks", [2, 3])
def test_labelled_bursts_of_any_length_give_the_steps_of_one(tmp_path: Path, ranks: int) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(b"".join(b"%d: " % rank + line(step) for rank in range(ranks) for step in range(48)))
    series = llmb.parse([log], framework="maxtext").series

    assert (series.attempt, steps_of(series)) == (0, [(step, 2.0) for step in range(48)])


def test_a_step_that_is_absurdly_fast_is_a_step_and_outside_the_window(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(b"".join(line(step, time_s) for step, time_s in enumerate([0.002, 44.9, 0.319, 5.668, 5.668])))
    series = llmb.parse([log], framework="maxtext").series

    assert steps_of(series)[0] == (0, 0.002)
    assert summarise(series.steps, "last").step_time_s == 5.668
    assert summarise(series.steps, (3, 4)).step_time_s == 5.668


@pytest.mark.parametrize(
    "filler",
    [
        pytest.param(b"x", id="plain"),
        pytest.param(b"completed step", id="half"),
        pytest.param(b"completed step: 1, ", marks=pytest.mark.slow, id="needles"),
    ],
)
def test_a_gigabyte_without_a_newline_costs_no_memory_and_hides_no_step(filler: bytes) -> None:
    size = GIB if filler == b"x" else 2 * MIB  # each needle costs time
    block = (filler * MIB)[:MIB]
    parser = MaxTextLog()
    tracemalloc.start()
    try:
        found = [item for _ in range(size // MIB) for item in parser.feed(block)]
        found += parser.feed(b"\n" + line(3))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert [item.step for item in found if isinstance(item, Step)][-1] == 3
    assert peak < 12 * MIB
