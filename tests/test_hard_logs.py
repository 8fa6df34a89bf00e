"""Synthetic logs that are made to break the verdict, judged as a user does, with ``llmb.grade``.

Each log has a true slowdown and the verdicts that an honest judge may give. The window is the last step, or steps 35 to
44. The numbers are drawn with the name of the log as the seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import pytest

import llmb
from llmb import Window

PUBLISHED_S, COUNT = 6.999, 50  # maxtext/llama2-70b, h100, bf16, 64 GPUs
MIDDLE: Window = (35, 44)
NOT_FAIL, NOT_PASS = frozenset({"pass", "undecided"}), frozenset({"fail", "undecided"})

Times = Callable[[random.Random], Sequence[float]]
"""Step times of a run, relative to its true step time."""


@attrs.frozen
class Hard:
    """Logs of the repeats of one run, of which each step is ``true`` times as long as published."""

    times: Times
    true: float = 1.0
    expected: str | frozenset[str] = "pass"
    window: Window = MIDDLE
    repeats: int = 1
    digits: int = 4
    end: str = ""

    @property
    def verdicts(self) -> frozenset[str]:
        return frozenset({self.expected}) if isinstance(self.expected, str) else self.expected


def steps(factor: Callable[[int], float] = lambda _step: 1.0, noise: float = 0.005, count: int = COUNT) -> Times:
    """Return steps of which step n takes ``factor(n)`` times as long, with noise, after a slow first one."""
    return lambda draw: [6.0, *(factor(step) * draw.gauss(1, noise) for step in range(1, count))]


def at(factor: float, *chosen: int) -> Callable[[int], float]:
    return lambda step: factor if step in chosen else 1.0


def between(factor: float, first: int, last: int) -> Callable[[int], float]:
    return lambda step: factor if first <= step <= last else 1.0


def correlated(rho: float, noise: float) -> Times:
    """Return steps whose noise follows a first-order autoregressive process."""

    def draw_times(draw: random.Random) -> list[float]:
        level, times = 0.0, [6.0]
        for _ in range(1, COUNT):
            level = rho * level + draw.gauss(0, noise * math.sqrt(1 - rho * rho))
            times.append(1 + level)
        return times

    return draw_times


def heavy_tail(draw: random.Random) -> list[float]:
    return [6.0, *(1 + 0.002 * (draw.paretovariate(1.1) - 1) for _ in range(1, COUNT))]


def two_levels(draw: random.Random) -> list[float]:
    return [6.0, *(draw.choice((0.94, 1.06)) * draw.gauss(1, 0.003) for _ in range(1, COUNT))]


def runs_differ(spread: float) -> Times:
    """Return runs of quiet steps that differ from each other."""
    return lambda draw: [6.0, *[draw.gauss(1, spread)] * (COUNT - 1)]


def some_with_checkpoint(draw: random.Random) -> Sequence[float]:
    """Return a run that has a checkpoint in its window, or none."""
    return steps(at(9.0 if draw.random() < 0.4 else 1.0, 38, 49))(draw)


EVERY_TEN = tuple(range(9, COUNT, 10))
OOM = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 bytes.\n"

HARD = {
    # plain runs
    "equal steps": Hard(steps(noise=0)),
    "equal steps, 12 % slower": Hard(steps(noise=0), 1.12, "fail"),
    "exactly at the limit": Hard(steps(noise=0), 1.05, "undecided"),
    "a hair above the limit": Hard(steps(noise=0), 1.0501, "undecided"),
    "1 % faster with 1 % noise": Hard(steps(noise=0.01), 0.99),
    "1 % slower with 1 % noise": Hard(steps(noise=0.01), 1.01),
    "4 % slower": Hard(steps(), 1.04, NOT_FAIL),
    "6 % slower": Hard(steps(), 1.06, NOT_PASS),
    "30 % faster": Hard(steps(), 0.7),
    # noise
    "noise of 3 %": Hard(steps(noise=0.03)),
    "noise of 8 %": Hard(steps(noise=0.08), expected=NOT_FAIL),
    "noise of 8 %, 12 % slower": Hard(steps(noise=0.08), 1.12, NOT_PASS),
    "noise of 8 % in one step": Hard(steps(noise=0.08), expected=NOT_FAIL, window="last"),
    "noise of 8 % in one step, 12 % slower": Hard(steps(noise=0.08), 1.12, NOT_PASS, "last"),
    "heavy tail": Hard(heavy_tail, expected=NOT_FAIL),
    "heavy tail, 12 % slower": Hard(heavy_tail, 1.12, NOT_PASS),
    "correlated noise": Hard(correlated(0.9, 0.02), expected=NOT_FAIL),
    "correlated noise, 12 % slower": Hard(correlated(0.9, 0.02), 1.12, NOT_PASS),
    "two kinds of steps": Hard(two_levels, expected=NOT_FAIL),
    "two kinds of steps, 12 % slower": Hard(two_levels, 1.12, NOT_PASS),
    # printed numbers
    "times in tenths of a second": Hard(steps(), digits=1),
    "times in full seconds": Hard(steps(noise=0.01), digits=0, expected=NOT_FAIL),
    "times in full seconds, 12 % slower": Hard(steps(noise=0.01), 1.12, NOT_PASS, digits=0),
    "one step printed too early": Hard(steps(at(0.01, 41))),
    "one step printed too early, 12 % slower": Hard(steps(at(0.01, 41)), 1.12, NOT_PASS),
    "last step printed too early, 12 % slower": Hard(steps(at(0.01, 49)), 1.12, NOT_PASS, "last"),
    "each step printed too early or too late": Hard(steps(lambda step: 0.1 if step % 2 else 1.9), expected=NOT_FAIL),
    # spikes
    "checkpoint in the last step": Hard(steps(at(9, 49)), expected="undecided", window="last"),
    "checkpoint in the window": Hard(steps(at(9, 40)), expected="undecided"),
    "checkpoint every ten steps": Hard(steps(at(4, *EVERY_TEN)), expected="undecided"),
    "checkpoint every ten steps, 12 % slower": Hard(steps(at(4, *EVERY_TEN)), 1.12, "fail"),
    "every third step takes longer": Hard(steps(lambda step: 0.98 + 0.06 * (step % 3 == 0)), expected=NOT_FAIL),
    "stall of ten minutes": Hard(steps(at(90, 37)), expected="undecided"),
    "stall outside the window": Hard(steps(at(90, 20))),
    "stall of 15 %": Hard(steps(at(1.15, 40))),
    # warm-up and drift
    "warm-up of 30 steps": Hard(steps(between(1.5, 1, 29)), expected=NOT_FAIL),
    "warm-up that never ends": Hard(steps(lambda step: 1 + 2 * math.exp(-step / 40)), 0.6, NOT_PASS),
    "warm-up of half the run": Hard(steps(between(1.3, 1, 25))),
    "slow before the window": Hard(steps(between(1.3, 20, 33)), expected=NOT_FAIL),
    "slow in the window": Hard(steps(between(1.3, 35, 44)), expected=NOT_FAIL),
    "slow after the window": Hard(steps(between(1.3, 45, 49)), expected=NOT_FAIL),
    "fast in the window, 12 % slower": Hard(steps(between(0.85, 35, 44)), 1.12, NOT_PASS),
    "fast first half, 12 % slower": Hard(steps(between(0.85, 1, 24)), 1.12, NOT_PASS),
    "drift of 8 %": Hard(steps(lambda step: 0.96 + 0.08 * step / COUNT), expected=NOT_FAIL),
    "drift of 8 %, 12 % slower": Hard(steps(lambda step: 0.96 + 0.08 * step / COUNT), 1.12, NOT_PASS),
    # parts of runs
    "cut off before the window": Hard(steps(count=30), expected="undecided"),
    "cut off within the window": Hard(steps(count=40), expected="undecided"),
    "five steps": Hard(steps(count=5), expected="undecided"),
    "five steps and no more, 12 % slower": Hard(steps(count=5), 1.12, NOT_PASS, "last"),
    "failure after the window": Hard(steps(count=46), expected="undecided", end=OOM),
    # repeats
    "runs differ by 4 %": Hard(runs_differ(0.04), expected=NOT_FAIL, repeats=4),
    "runs differ by 4 %, 12 % slower": Hard(runs_differ(0.04), 1.12, NOT_PASS, repeats=4),
    "some repeats with checkpoints": Hard(some_with_checkpoint, repeats=4),
    "some repeats with checkpoints, 12 % slower": Hard(some_with_checkpoint, 1.12, "fail", repeats=4),
}


def write_log(path: Path, hard: Hard, draw: random.Random) -> Path:
    """Write the log of one run, as MaxText prints it. No two logs of a set are copies."""
    times_s = [PUBLISHED_S * hard.true * time for time in hard.times(draw)]
    times_s[0] += draw.random()
    lines = [f"completed step: {step}, seconds: {time_s:.{hard.digits}f}, TFLOP/s/device: 9.0, loss: 8.0"
             for step, time_s in enumerate(times_s)]  # fmt: skip
    path.write_text("\n".join([*lines, hard.end]))
    return path


def judge(hard: Hard, folder: Path, seed: str) -> llmb.Grade:
    draw = random.Random(seed)
    logs = [write_log(folder / f"{number}.log", hard, draw) for number in range(hard.repeats)]
    return llmb.grade(
        logs,
        recipe="maxtext/llama2-70b",
        gpu_type="h100",
        dtype="bf16",
        gpus=64,
        window=hard.window,
        repeats=hard.repeats > 1,
    )


def test_there_are_fifty_logs() -> None:
    assert len(HARD) >= 50


@pytest.mark.parametrize("name", HARD)
def test_no_log_gets_a_wrong_verdict(tmp_path: Path, name: str) -> None:
    grade = judge(HARD[name], tmp_path, name)
    assert grade.verdict in HARD[name].verdicts, grade.reason
