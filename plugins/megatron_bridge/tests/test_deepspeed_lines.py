"""DeepSpeed's own step lines in logs of Megatron-DeepSpeed."""

from __future__ import annotations

import math

import pytest
from parts.garbled import garbled, read

from llmb import Step, StepSeries
from llmb_megatron_bridge.log import MegatronLog


def deepspeed(number: int, loss: str = "1.1134", more: str = "") -> str:
    return f"steps: {number} loss: {loss} {more}iter time (s): 10.{number:03} samples/sec: 0.370\n"


def megatron(number: int) -> str:
    return (
        f" iteration {number:8d}/      20 | elapsed time per iteration (ms): {number}500.0 | lm loss: 6.5E+00 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def steps(log: str) -> list[Step]:
    series = StepSeries()
    series.add(read(MegatronLog, log.encode()))
    return list(series.steps)


@pytest.mark.parametrize("more", ["", "lm loss: 5.5103 moe loss: 0.0405 "])
@pytest.mark.parametrize("label", ["", "localhost: ", "[^^] "])
def test_lines_of_deepspeed_alone_are_steps(more: str, label: str) -> None:
    found = steps("".join(label + deepspeed(number, more=more) for number in range(1, 21)))

    assert [step.step for step in found] == list(range(1, 21))
    assert found[-1] == Step(step=20, time_s=10.020, loss=1.1134, other_values={"samples/sec": 0.37}, mean_of=1)


def test_only_the_lines_of_megatron_count_if_a_log_has_both() -> None:
    log = "".join(deepspeed(number) + (megatron(number) if number % 2 == 0 else "") for number in range(1, 7))

    assert [(step.step, step.time_s) for step in steps(log)] == [(2, 2.5), (4, 4.5), (6, 6.5)]


def test_only_the_lines_of_megatron_count_if_another_rank_has_a_log_of_its_own() -> None:
    parser = MegatronLog()
    found = [*parser.feed(deepspeed(1).encode(), "0.log"), *parser.feed(megatron(1).encode(), "1.log"), *parser.close()]

    assert [step.time_s for step in found if isinstance(step, Step)] == [1.5]


def test_the_last_run_in_a_log_counts() -> None:
    log = "".join(map(deepspeed, [*range(1, 21), *range(1, 6), 5]))

    assert [step.step for step in steps(log)] == [1, 2, 3, 4, 5]


def test_a_loss_may_be_nan() -> None:
    [step] = steps(deepspeed(1, loss="nan"))

    assert step.loss is not None
    assert math.isnan(step.loss)


def test_a_last_line_that_is_cut_is_no_step() -> None:
    line = deepspeed(2).rstrip()

    assert [len(steps(deepspeed(1) + line[:length])) for length in (len(line) - 1, len(line))] == [1, 2]


def test_a_garbled_log_does_not_stop_the_parser() -> None:
    assert all(read(MegatronLog, each) for each in garbled("".join(map(deepspeed, range(1, 8))).encode(), 50))
