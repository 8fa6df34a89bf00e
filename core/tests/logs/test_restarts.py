"""Step numbers that go back: steps printed again, and new runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb.logs.steps.restarts import FIRST_LINE_LOST, Numbering
from llmb.logs.steps.step_series import StepSeries
from llmb.values.steps import Step

FURTHEST_APART = FIRST_LINE_LOST - 1  # steps; in truth ranks are never more than one or two apart


def run_of(printed: Iterable[tuple[str, int]]) -> StepSeries:
    """Return the run in a log with these ranks and numbers. The time of a step is its position in the log."""
    numbering, series = Numbering(), StepSeries()
    for place, (label, number) in enumerate(printed):
        series.add(numbering.take(Step(step=number, time_s=place), label.encode()))
    series.add(numbering.close())
    return series


def numbers(*printed: Iterable[int]) -> list[int]:
    return [step.step for step in run_of(("", number) for part in printed for number in part).steps]


def by_turns(*ranks: Sequence[int], late: int = 0) -> list[int]:
    """Return the lines of ranks that print in turn, each ``late`` steps behind the rank before."""
    turns = range(max(map(len, ranks)) + late * len(ranks))
    places = [(turn - late * rank, each) for turn in turns for rank, each in enumerate(ranks)]
    return [each[place] for place, each in places if 0 <= place < len(each)]


def test_a_step_printed_again_replaces_the_earlier_one() -> None:
    series = run_of(("", number) for number in (0, 1, 2, 2, 3))

    assert [(step.step, step.time_s) for step in series.steps] == [(0, 0), (1, 1), (2, 3), (3, 4)]


def test_lines_printed_twice_give_the_same_run() -> None:
    for printed in product((0, 1, 2, 3, 9), repeat=5):
        once = run_of(("", number) for number in printed)
        twice = run_of(("", number) for number in printed for _ in range(2))
        assert twice.attempt == once.attempt, printed
        assert [step.step for step in twice.steps] == [step.step for step in once.steps], printed


def test_a_rewind_below_the_first_step_of_the_log_is_no_new_run_if_lines_are_printed_twice() -> None:
    doubled = (number for number in (70, 71, 72, 69, 70, 71) for _ in range(2))
    assert run_of(("", number) for number in doubled).attempt == 0


def test_a_rewind_to_a_checkpoint_continues_the_run() -> None:
    assert numbers(range(10), range(5, 13)) == list(range(13))


def test_a_rewind_keeps_the_steps_that_are_not_printed_again() -> None:
    assert numbers(range(10), range(5, 7)) == list(range(10))


@pytest.mark.parametrize("late", [[0], [5], [0, 0], [0, 7], [0, 7, 0]])
def test_a_late_line_is_no_restart(late: list[int]) -> None:
    assert numbers(range(8), late, range(8, 12)) == list(range(12))


def test_a_late_line_does_not_make_a_restart_of_a_rewind_after_it() -> None:
    assert numbers(range(8), [0], range(8, 12), range(3, 6)) == list(range(12))


def test_a_run_begins_with_the_lowest_first_step_of_its_ranks() -> None:
    assert numbers([6, 5, 7, 6, 8, 7, 9, 8, 9], range(5, 7)) == [5, 6]


@pytest.mark.parametrize(
    "printed", [range(50), range(1, 51), range(0, 50, 10), [1, *range(10, 60, 10)], range(120, 150)], ids=str
)
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_log_with_its_newest_line_first_has_the_steps_of_one_run(printed: Sequence[int], ranks: int) -> None:
    series = run_of(("", number) for number in by_turns(*[printed[::-1]] * ranks))

    assert [step.step for step in series.steps] == list(printed)
    assert (series.attempt, series.newest_first) == (0, True)


@pytest.mark.parametrize("printed", [[50, *range(50)], [50, *range(40, 48)], [3, 2, 1, *range(4, 50)], [1], []])
def test_a_log_whose_numbers_fall_at_most_for_a_moment_has_its_oldest_line_first(printed: list[int]) -> None:
    assert not run_of(("", number) for number in printed).newest_first


@pytest.mark.parametrize(
    ("logs", "newest_first"),
    [
        ([[40], [30], [20], [10]], False),
        ([[49], range(30, 50), range(20, 50), range(10, 50)], False),  # the beginning of each log is lost
        ([[49], [3, 2, 1, 0, *range(4, 49)]], False),
        ([[60], range(49, -1, -1)], True),
        ([range(49, -1, -1)] * 2, True),
    ],
    ids=str,
)
def test_the_first_steps_of_several_logs_may_fall_although_each_has_its_oldest_line_first(
    logs: Sequence[Sequence[int]], newest_first: bool
) -> None:
    series = StepSeries()
    for rank, printed in enumerate(logs):
        series.add([Step(step=number) for number in printed], source=f"rank{rank}.log")
    assert series.newest_first is newest_first


def test_a_late_first_step_at_the_end_of_the_log_is_no_restart() -> None:
    assert numbers(range(8), [0]) == list(range(8))


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("first", [0, 1, 100])
def test_ranks_that_print_into_one_log_without_labels_are_one_run(ranks: int, late: int, first: int) -> None:
    series = run_of(("", number) for number in by_turns(*[range(first, first + 20)] * ranks, late=late))

    assert [step.step for step in series.steps] == list(range(first, first + 20))


def test_two_ranks_one_step_apart_never_look_like_a_restart() -> None:
    assert run_of(("", number) for number in by_turns(range(20), range(20), late=1)).attempt == 0


@pytest.mark.parametrize(
    ("profiled", "measured"),
    [
        (range(15), range(50)),
        (range(50), range(15)),
        (range(1, 16), range(1, 51)),
        (range(1, 51), range(1, 16)),
        (range(15), range(1, 51)),
        (range(15), range(1, 6)),
        (range(1, 16), range(5)),
        (range(3), range(2)),
        (range(15), range(2)),
        (range(10, 210, 10), range(10, 60, 10)),
        (range(100, 150), range(100, 110)),
        (range(500, 700, 10), range(10, 60, 10)),
        (range(509, 700, 10), range(9, 60, 10)),
    ],
    ids=str,
)
@pytest.mark.parametrize("ranks", [1, 3])
def test_numbers_that_start_again_begin_a_new_run_and_the_last_run_counts(
    profiled: Sequence[int], measured: Sequence[int], ranks: int
) -> None:
    printed = [*by_turns(*[profiled] * ranks), *by_turns(*[measured] * ranks)]

    assert numbers(printed) == list(measured)


def test_three_runs_in_one_log_leave_the_third() -> None:
    series = run_of(("", number) for _ in range(3) for number in range(1, 51))

    assert series.attempt == 2
    assert [step.time_s for step in series.steps] == list(range(100, 150))


def test_labelled_ranks_may_be_any_distance_apart() -> None:
    printed = [("0: ", number) for number in range(20)] + [("1: ", number) for number in range(20)]

    assert run_of(printed).attempt == 0


def test_a_new_run_is_new_for_all_ranks_of_the_log() -> None:
    profiled = [(label, number) for number in range(15) for label in ("0: ", "1: ")]
    measured = [(label, number) for number in range(5) for label in ("0: ", "1: ")]
    series = run_of(profiled + measured)

    assert series.attempt == 1
    assert [step.step for step in series.steps] == list(range(5))


def test_a_rank_that_prints_only_in_the_second_run_belongs_to_it() -> None:
    printed = [("0: ", number) for number in range(15)]
    printed += [(label, number) for number in range(5) for label in ("0: ", "1: ")]
    series = run_of(printed)

    assert [step.step for step in series.steps] == list(range(5))


@pytest.mark.slow
@given(
    runs=st.lists(st.integers(3, 30), min_size=1, max_size=3),
    ranks=st.integers(1, 4),
    first=st.integers(0, 1),
    data=st.data(),
)
def test_however_ranks_are_interleaved_every_step_of_the_last_run_is_kept(
    runs: list[int], ranks: int, first: int, data: st.DataObject
) -> None:
    printed: list[int] = []
    for length in runs:
        next_of = [first] * ranks
        while open_ranks := [rank for rank in range(ranks) if next_of[rank] < first + length]:
            last = min(next_of[rank] for rank in open_ranks)
            may = [rank for rank in open_ranks if next_of[rank] < last + FURTHEST_APART]
            rank = data.draw(st.sampled_from(may))
            printed.append(next_of[rank])
            next_of[rank] += 1

    assert numbers(printed) == list(range(first, first + runs[-1]))
