"""A table of steps gives back what was put in, whatever came before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
