"""A table of steps gives back what was put in, whatever came before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb.logs import table as table_module
from llmb.logs.found import UnreadSteps
from llmb.logs.table import StepTable
from llmb.values.steps import Step

NUMBERS = st.floats(allow_nan=False)
STEPS = st.builds(
    Step,
    step=st.integers(0, 9),
    time_s=st.none() | NUMBERS,
    loss=st.none() | NUMBERS,
    figures=st.dictionaries(st.sampled_from("abcd"), NUMBERS),
    mean_of=st.integers(1, 5),
)


@given(st.lists(STEPS))
def test_the_last_step_of_each_number_is_kept_whole_and_in_order(steps: list[Step]) -> None:
    table = StepTable()
    for step in steps:
        table.put(step)
    last = {step.step: step for step in steps}
    assert list(table) == [last[number] for number in sorted(last)]


def test_a_step_drawn_anew_for_ever_takes_no_more_room() -> None:
    table = StepTable()
    for drawn in range(1000):
        table.put(Step(step=1, figures={"grad norm": drawn} if drawn % 2 else {"grad norm": drawn, "rate": 1.0}))
    assert len(table._figures._values) <= 4


def read(text: bytes) -> Step:
    number, time_s = text.split()
    return Step(step=int(number), time_s=float(time_s))


@given(steps=st.lists(st.tuples(st.integers(0, 9), st.booleans())), room=st.sampled_from([0, 20, 1 << 20]))
def test_steps_that_were_not_read_are_the_same_when_they_are(steps: list[tuple[int, bool]], room: int) -> None:
    table, last = StepTable(attempt=3), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "MOST_UNREAD", room)
        for place, (number, at_once) in enumerate(steps):
            last[number] = Step(step=number, time_s=place, attempt=3)
            if at_once:
                table.put(last[number])
            else:
                table.put_unread(UnreadSteps(3, read, [(number, b"%d %d" % (number, place))]))
            assert len(table) == len(last)

    assert list(table) == [last[number] for number in sorted(last)]
    assert list(table.numbers) == sorted(last)
    assert table[-2:] == list(table)[-2:]


def test_a_step_is_not_read_before_it_is_wanted() -> None:
    def dare(text: bytes) -> Step:
        assert text == b"7 1"
        return read(text)

    table = StepTable()
    table.put_unread(UnreadSteps(0, dare, [(number, b"%d 1" % number) for number in (5, 6, 7)]))

    assert (len(table), table.rhythm, table[-1]) == (3, 1, Step(step=7, time_s=1))


def test_steps_printed_again_for_ever_take_no_more_room() -> None:
    table = StepTable()
    for _ in range(100):
        table.put_unread(UnreadSteps(0, read, [(1, b"1 " + b"1" * 500_000)]))
    assert sum(map(len, table._unread.values())) <= 500_002


def test_a_mean_since_the_step_before_counts_the_steps_between() -> None:
    table = StepTable()
    for number in (10, 30, 20, 60):
        table.put(Step(step=number, time_s=1.0, mean_of=None))
    assert [step.mean_of for step in table] == [10, 10, 10, 30]
