"""Runs that are made to break the verdict: a healthy one never fails, and a slow one never passes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from llmb.analysis.measuring_window import summarise
from llmb.analysis.steady_state import find_steady_state
from llmb.analysis.verdict import Repeat, judge_step_times
from llmb.values.recipe import Window
from llmb.values.steps import Step

COUNT, PUBLISHED_S, RUNS = 50, 10.0, 30

Shape = Callable[[random.Random, int], float]
"""The relative time of a step."""


def spiked(factor: float, *steps: int) -> Shape:
    """Return steps with a noise of 0.5 %, of which some take ``factor`` times as long."""
    return lambda draw, step: draw.gauss(1, 0.005) * (factor if step in steps else 1)


def slower(factor: float, first: int, last: int) -> Shape:
    return lambda draw, step: draw.gauss(1, 0.005) * (factor if first <= step <= last else 1)


SHAPES: dict[str, Shape] = {
    "equal steps": lambda _draw, _step: 1.0,
    "noise of 1 %": lambda draw, _step: draw.gauss(1, 0.01),
    "noise of 5 %": lambda draw, _step: draw.gauss(1, 0.05),
    "short warm-up": lambda draw, step: draw.gauss(1, 0.005) * (1 + 3 * math.exp(-step / 5)),
    "long warm-up": lambda draw, step: draw.gauss(1, 0.005) * (1 + 3 * math.exp(-step / 15)),
    "two kinds of steps": lambda draw, step: draw.gauss(1, 0.003) * (0.97 if step % 2 else 1.03),
    "drift of 6 %": lambda draw, step: draw.gauss(1, 0.003) * (0.97 + 0.06 * step / COUNT),
    "heavy tail": lambda draw, _step: 1 + 0.002 * (draw.paretovariate(1.2) - 1),
    "rounded": lambda draw, _step: round(PUBLISHED_S * draw.gauss(1, 0.01)) / PUBLISHED_S,
    "checkpoint in the last step": spiked(8, 50),
    "checkpoint every ten steps": spiked(4, *range(10, 51, 10)),
    "stall in the window": spiked(3, 38),
    "two stalls in the window": spiked(1.5, 38, 42),
    "small stall in the window": spiked(1.15, 38),
    "stall of ten minutes": spiked(60, 40),
    "step printed too early": spiked(0.01, 41),
    "last step printed too early": spiked(0.001, 50),
    "three steps printed too early": spiked(0.2, 36, 40, 44),
    "slow before the window": slower(1.3, 20, 33),
    "slow in the window": slower(1.3, 35, 44),
    "slow after the window": slower(1.3, 45, 50),
    "slow first half": slower(1.3, 1, 25),
    "fast in the window": slower(0.8, 35, 44),
    "fast first half": slower(0.9, 1, 20),
}


@pytest.mark.parametrize("window", [(35, 44), "last"])
@pytest.mark.parametrize("name", SHAPES)
def test_no_verdict_is_wrong(name: str, window: Window) -> None:
    draw = random.Random(name)
    for slowdown, wrong in ((0.0, "fail"), (0.12, "pass")):
        for _ in range(RUNS):
            run_s = PUBLISHED_S * (1 + slowdown) * draw.gauss(1, 0.003)
            steps = [Step(step=step, time_s=run_s * SHAPES[name](draw, step)) for step in range(1, COUNT + 1)]
            summary = summarise(steps, window)
            measured = summary.measured(summary.step_time_s)
            assert measured
            found = judge_step_times(
                [Repeat(window=measured, steady_state=find_steady_state(steps))], PUBLISHED_S, 0.05
            )
            assert found.verdict != wrong, found.reason
