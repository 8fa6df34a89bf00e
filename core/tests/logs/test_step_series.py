"""Steps of the current run: kept, replaced and counted."""

from __future__ import annotations

import math
import random
import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb.logs.steps.step_series import MAX_NOTICES, StepSeries
from llmb.values.steps import Notice, Step

FIGURES = st.none() | st.floats(allow_nan=False)
STEPS = st.builds(
    Step,
    step=st.integers(0, 20),
    time_s=FIGURES,
    loss=FIGURES,
    tflops_per_gpu=FIGURES,
    tokens_per_s_per_gpu=FIGURES,
    other_values=st.dictionaries(st.sampled_from(["lr", "grad_norm", "total_weights"]), st.floats(allow_nan=False)),
    mean_of=st.integers(1, 10),
)


def series_of(numbers: Iterable[int], first_step: int | None = None) -> StepSeries:
    series = StepSeries(first_step=first_step)
    series.add(Step(step=number, time_s=1.0) for number in numbers)
    return series


@given(st.lists(STEPS))
def test_the_last_step_of_each_number_is_kept_in_order(steps: list[Step]) -> None:
    series = StepSeries()
    series.add(steps)

    latest = {step.step: step for step in steps}
    assert list(series.steps) == [latest[number] for number in sorted(latest)]
    assert series.last_step == (latest[max(latest)] if latest else None)


PROCESSES = [("rank2.log", None), ("rank10.log", None), ("all.log", 9), ("all.log", 11)]
"""Processes in ascending order without those of `all.log`, and in ascending order with them alone."""


@pytest.mark.parametrize("processes", [PROCESSES[:2], PROCESSES[2:]])
@given(data=st.data())
def test_the_steps_are_those_of_the_first_process_in_whatever_order_logs_arrive(
    processes: list[tuple[str, int | None]], data: st.DataObject
) -> None:
    printed = {
        each: [Step(step=n, rank=each[1], time_s=n + i / 10) for n in (1, 2, 3, 2, 3, 4)]
        for i, each in enumerate(processes)
    }
    waiting = [each for each, steps in printed.items() for _ in steps]
    series = StepSeries()
    for process in data.draw(st.permutations(waiting)):
        series.add([printed[process].pop(0)], source=process[0])

    assert [step.time_s for step in series.steps] == [1.0, 2.0, 3.0, 4.0]


def test_a_step_without_a_time_gives_way_to_that_of_another_process() -> None:
    series = StepSeries()
    series.add([Step(step=1, rank=3, time_s=2.0), Step(step=1, rank=0)])
    series.add([Step(step=2, rank=0), Step(step=2, rank=3, time_s=2.5)])

    assert [step.time_s for step in series.steps] == [2.0, 2.5]


@pytest.mark.parametrize("order", [(0, 3), (3, 0)])
def test_a_step_without_a_rate_gives_way_to_that_of_another_process_if_none_has_a_time(order: tuple[int, ...]) -> None:
    printed = {0: Step(step=1, rank=0, loss=2.0), 3: Step(step=1, rank=3, tflops_per_gpu=400.0)}
    series = StepSeries()
    series.add([printed[rank] for rank in order], source="log")

    assert [step.tflops_per_gpu for step in series.steps] == [400.0]


def test_steps_are_a_sequence() -> None:
    steps = series_of(range(10)).steps

    assert (len(steps), steps[0].step, steps[-1].step) == (10, 0, 9)
    assert [step.step for step in steps[-3:]] == [7, 8, 9]
    with pytest.raises(IndexError):
        steps[10]


def test_a_nan_loss_is_not_a_missing_loss() -> None:
    series = StepSeries()
    series.add([Step(step=0), Step(step=1, loss=math.nan, other_values={"lr": math.nan})])

    assert series.steps[0].loss is None
    assert series.steps[1].loss is not None
    assert math.isnan(series.steps[1].loss)
    assert math.isnan(series.steps[1].other_values["lr"])


def test_a_later_attempt_replaces_the_one_before() -> None:
    series = StepSeries()
    series.add([Step(step=step, loss=math.nan) for step in range(9)])
    series.add([Notice(kind="nan"), Notice(kind="total steps", value=9), Notice(kind="failed", text="it broke")])
    series.add([Step(step=0, attempt=1), Step(step=1, attempt=1)])

    assert [(step.step, step.attempt) for step in series.steps] == [(0, 1), (1, 1)]
    assert (series.attempt, series.nan, series.notices) == (1, False, ())
    assert series.total_steps == 9


def test_a_checkpoint_whose_line_is_printed_twice_counts_once() -> None:
    saved = Notice(kind="checkpoint", time_s=2.5)
    series = StepSeries()
    series.add([Step(step=1), Step(step=1), saved, saved, Step(step=2), Step(step=2)])
    assert series.checkpoints_s == 2.5


def test_equal_times_of_checkpoints_add_up_and_end_with_the_run() -> None:
    saved = Notice(kind="checkpoint", time_s=2.5)
    series = StepSeries()
    series.add([Step(step=1), saved, Step(step=2), saved])
    assert series.checkpoints_s == 5.0
    series.add([Step(step=1, attempt=1)])
    assert series.checkpoints_s == 0.0


def test_a_run_that_ended_as_planned_has_all_of_its_steps() -> None:
    series = StepSeries(first_step=0)
    series.add([Notice(kind="total steps", value=90), Step(step=0, time_s=1.0), Notice(kind="planned end", attempt=0)])
    series.add([Step(step=1, time_s=1.0)])  # printed after the message
    assert series.total_steps == 2
    series.add([Step(step=0, time_s=1.0, attempt=1)])
    assert series.total_steps == 90


def test_late_steps_of_an_earlier_attempt_are_skipped() -> None:
    series = StepSeries()
    series.add([Step(step=0, attempt=1), Step(step=7, attempt=0)])

    assert [step.step for step in series.steps] == [0]


def test_nan_is_remembered_if_the_step_is_printed_again() -> None:
    series = StepSeries()
    series.add([Step(step=3, loss=math.nan), Step(step=3, loss=1.0)])

    assert series.nan


def losses(first: int, last: int, loss: float | None = 1.0, rank: int | None = None) -> list[Step]:
    return [Step(step=number, loss=loss, rank=rank) for number in range(first, last + 1)]


def test_nan_is_forgotten_once_a_rewound_run_repeated_the_step_with_a_loss() -> None:
    series = StepSeries()
    series.add([*losses(1, 28), *losses(29, 30, math.nan), Notice(kind="nan", text="aborting")], source="log")
    series.add(losses(21, 29), source="log")
    assert series.nan  # step 30 is still that of before
    series.add(losses(30, 30))  # found at the end of the log
    assert not series.nan
    series.add(losses(31, 31, math.nan), source="log")
    assert series.nan


def test_a_gradient_of_nan_is_forgotten_once_a_rewound_run_repeated_the_step() -> None:
    series = StepSeries()
    series.add([*losses(1, 30), Notice(kind="nan", text="the gradient norm of iteration 30 is NaN"), *losses(21, 40)])

    assert not series.nan


def test_nan_of_a_repeated_step_counts() -> None:
    series = StepSeries()
    series.add([*losses(1, 30, math.nan), *losses(1, 29), *losses(30, 30, math.nan), *losses(31, 40)])

    assert series.nan


@pytest.mark.parametrize(
    ("source", "rank", "loss"),
    [("rank1.log", None, 1.0), ("rank0.log", 1, 1.0), ("rank0.log", None, None)],
    ids=["another log", "another rank", "no loss"],
)
def test_nan_of_one_process_stays_whatever_the_others_print(source: str, rank: int | None, loss: float | None) -> None:
    series = StepSeries()
    series.add(losses(1, 30, math.nan), source="rank0.log")
    series.add(losses(1, 30, loss, rank), source=source)

    assert series.nan


def test_a_long_run_of_nan_is_forgotten_once_it_is_repeated() -> None:
    series = StepSeries()
    series.add([*losses(0, 20_000, math.nan), *losses(0, 20_000)])

    assert not series.nan


@pytest.mark.parametrize("order", [("rank0.log", "rank1.log"), ("rank1.log", "rank0.log")])
def test_a_notice_of_nan_is_about_the_step_before_it_in_its_log(order: tuple[str, ...]) -> None:
    series = StepSeries()
    for source in order:
        series.add(losses(1, 30 if source == "rank0.log" else 35), source=source)
    series.add([Notice(kind="nan", text="the gradient norm of iteration 30 is NaN")], source="rank0.log")
    series.add(losses(21, 32), source="rank0.log")

    assert not series.nan


def test_a_notice_of_nan_is_enough() -> None:
    series = series_of(range(3))
    series.add([Notice(kind="nan")])

    assert series.nan


def test_each_notice_is_kept_once_up_to_a_limit() -> None:
    series = StepSeries()
    series.add([Notice(kind="failed", text="a"), Notice(kind="finished"), Notice(kind="failed", text="a")])
    assert series.notices == (Notice(kind="failed", text="a"), Notice(kind="finished"))

    series.add(Notice(kind="failed", text=str(number)) for number in range(2 * MAX_NOTICES))
    assert len(series.notices) == MAX_NOTICES


@pytest.mark.parametrize(
    ("numbers", "first_step", "count"),
    [
        (range(50), None, 50),
        (range(1, 51), None, 50),
        (range(10, 210, 10), None, 200),
        (range(9, 100, 10), None, 100),
        (range(0, 100, 10), None, 100),
        (range(30, 51), 1, 50),
        (range(30, 50), 0, 50),
        (range(30, 51), None, 50),
        (range(0), None, 0),
        ([49], 0, 50),
        ([1, *range(10, 100, 10)], 1, 90),
        ([1, *range(10, 100, 10)], None, 90),
        ([*range(0, 40, 10), 34], 0, 35),
    ],
    ids=str,
)
def test_the_number_of_steps_that_were_run(numbers: Iterable[int], first_step: int | None, count: int) -> None:
    assert series_of(numbers, first_step).count == count


def test_ranks_in_any_order_give_the_same_as_one_rank() -> None:
    numbers = [*range(100), *range(100)]
    random.Random(1).shuffle(numbers)

    assert list(series_of(numbers).steps) == list(series_of(range(100)).steps)


def test_a_mean_since_the_step_before_counts_the_steps_between() -> None:
    series = StepSeries()
    series.add(Step(step=number, time_s=1.0, mean_of=None) for number in (10, 30, 20, 60))
    assert [step.mean_of for step in series.steps] == [10, 10, 10, 30]


def test_a_million_steps_need_less_than_half_a_gigabyte() -> None:
    series, count = StepSeries(), 20_000
    tracemalloc.start()
    try:
        series.add(
            Step(step=n, time_s=n / 7, loss=n / 3, tflops_per_gpu=n / 9, other_values={"lr": n / 5})
            for n in range(count)
        )
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert series.count == count
    assert held / count < 500
