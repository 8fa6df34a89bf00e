"""The step at which a time limit comes."""

import pytest

from llmb.analysis.time_left import find_limit_step
from llmb.values.steps import Step


@pytest.mark.parametrize(
    ("done", "time_left_s", "limit_step"),
    [
        (9, 400.0, 89),  # 491 steps of 5 s
        (8, 400.0, None),  # too few after the warm-up
        (30, 1800.0, 390),
        (30, 2300.0, None),  # 50 s short of 2350 s
        (30, 2500.0, None),
        (30, -3.0, 30),
        (499, 4.0, None),  # the last step may be done
    ],
)
def test_the_step_at_which_a_time_limit_comes(done: int, time_left_s: float, limit_step: int | None) -> None:
    log = [Step(step=number, time_s=60.0 if number <= 3 else 5.0) for number in range(1, done + 1)]
    assert find_limit_step(log, done, 500, time_left_s) == limit_step


def test_steps_that_are_not_printed_yet_may_be_done() -> None:
    log = [Step(step=number, time_s=5.0) for number in range(10, 401, 10)]
    assert find_limit_step(log, 400, 500, 430.0) is None
    assert find_limit_step(log, 400, 500, 350.0) == 470
