"""The objections to a verdict, and repeats that are left out of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from llmb.analysis.measuring_window import MeasuredWindow, summarise
from llmb.analysis.steady_state import find_steady_state
from llmb.analysis.verdict import Candidate, Judgement, Repeat, describe_missing_window, find_objection, judge_set
from llmb.values.recipe import Window
from llmb.values.steps import Step


@pytest.mark.parametrize(
    ("facts", "verdict", "reason"),
    [
        ({"profiled": True, "completed": False}, None, "profiled runs are not judged"),
        ({"published": False, "completed": False}, None, "no baseline is published for this run"),
        (
            {"differences": ("env.A", "model.layers"), "completed": False},
            "undecided",
            "not comparable with the baseline: env.A, model.layers differ from the recipe",
        ),
        (
            {"differences": ("env.A",)},
            "undecided",
            "not comparable with the baseline: env.A differs from the recipe",
        ),
        ({"completed": False, "loss_nan": True}, "undecided", "the run did not complete"),
        ({"loss_nan": True, "missing_window": "no"}, "undecided", "the loss was NaN, so the run trained nothing"),
        ({"missing_window": "the window is missing", "invalid_step_time": "no"}, "undecided", "the window is missing"),
        ({"invalid_step_time": "the logs are not of one run"}, "undecided", "the logs are not of one run"),
    ],
)
def test_the_first_objection_prevents_a_verdict(facts: dict[str, Any], verdict: str | None, reason: str) -> None:
    found = find_objection(**{"published": True, **facts})
    assert found == Judgement(verdict=verdict, reason=reason)  # type: ignore[arg-type]


def test_a_complete_run_with_a_baseline_has_no_objection() -> None:
    assert find_objection(published=True) is None


def measured(step_time_s: float) -> Candidate:
    window = MeasuredWindow(first=50, last=50, count=1, step_time_s=step_time_s, step_time_std_s=None)
    return Candidate(repeat=Repeat(window=window, steady_state=None))


def failed(name: str) -> Candidate:
    return Candidate(name=name, objection=Judgement(verdict="undecided", reason="hit the time limit"))


def test_repeats_are_judged_without_those_that_did_not_complete() -> None:
    found = judge_set([failed("repeat 1"), measured(10.0), measured(10.1)], 10.0, 0.05)
    assert (found.verdict, found.left_out) == ("pass", (0,))
    assert found.ratio == pytest.approx(1.005)
    assert "repeat 1 is left out: hit the time limit" in found.reason


def test_repeats_of_which_none_counts_have_the_first_reason() -> None:
    found = judge_set([failed("repeat 1"), failed("repeat 2")], 10.0, 0.05)
    assert (found.verdict, found.reason, found.interval) == ("undecided", "hit the time limit", None)


def test_the_verdict_on_repeats_without_a_result_does_not_depend_on_their_order() -> None:
    other = Candidate(name="repeat 2", objection=Judgement(verdict=None, reason="written by nemo_launcher"))
    found = [judge_set(each, 10.0, 0.05) for each in ([failed("repeat 1"), other], [other, failed("repeat 1")])]
    assert [each.verdict for each in found] == ["undecided", "undecided"]


def test_a_reason_names_the_first_of_many_repeats() -> None:
    late = [
        Candidate(name=f"repeat {number}", objection=Judgement(verdict=None, reason="a")) for number in range(1, 61)
    ]
    other = Candidate(name="repeat 61", objection=Judgement(verdict="undecided", reason="b"))
    found = judge_set([*late, other], 10.0, 0.05)
    assert found.reason == "repeat 1, repeat 2, repeat 3, repeat 4 and 56 more: a; repeat 61: b"


def test_a_run_without_step_time_is_undecided() -> None:
    assert judge_set([Candidate()], 10.0, 0.05).reason == "there is no step time to compare"


@pytest.mark.parametrize(
    ("times_s", "window", "reason"),
    [
        (
            [20.0] + [2.226] * 19,
            (35, 44),
            "steps 35 to 44 are not in the log (it has 1 to 20); "
            "the steady state, steps 2 to 20, takes 2.226 s per step, 0.998 x the published step time",
        ),
        (
            [2.0] * 5,
            (35, 44),
            "steps 35 to 44 are not in the log (it has 1 to 5); "
            "there is no steady state, because fewer than 8 steps have a time",
        ),
        (
            [2.0] * 40,
            (35, 44),
            "steps 35 to 44 are not all measured (the log has 1 to 40); "
            "the steady state, steps 1 to 40, takes 2 s per step, 0.897 x the published step time",
        ),
        (
            [2.0] * 12 + [None],
            "last",
            "the last step has no time; "
            "the steady state, steps 1 to 12, takes 2 s per step, 0.897 x the published step time",
        ),
        (
            [2.0] * 12,
            "last",
            "the last step of the run is not in the log (it has 1 to 12); "
            "the steady state, steps 1 to 12, takes 2 s per step, 0.897 x the published step time",
        ),
    ],
)
def test_a_missing_window_is_described_next_to_the_steady_state(
    times_s: Sequence[float | None], window: Window, reason: str
) -> None:
    steps = [Step(step=number, time_s=time_s) for number, time_s in enumerate(times_s, start=1)]
    assert describe_missing_window(summarise(steps, window), steps, find_steady_state(steps), 2.2305) == reason
