"""Verdict on a run: a reason that prevents one, or else the comparison of its step time with the published one."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from llmb.analysis.judge_repeats import Judgement, Repeat, add_clause, judge_repeats
from llmb.analysis.measuring_window import Summary
from llmb.analysis.steady_state import LEAST_STEPS, SteadyState
from llmb.values.steps import Step

TOLERANCE = 0.05
"""How far a step time may exceed the baseline by default, as a fraction."""


@attrs.frozen(kw_only=True)
class Candidate:
    """One run of a set of repeats: its step times, or the objection that prevents a verdict on them."""

    name: str = "the run"
    repeat: Repeat | None = None
    objection: Judgement | None = None


def find_objection(
    *,
    published: bool,
    profiled: bool = False,
    differences: Sequence[str] = (),
    completed: bool = True,
    loss_nan: bool = False,
    missing_window: str = "",
) -> Judgement | None:
    """Return the first reason that prevents a verdict on a run's step time, or None.

    The verdict is None if the run cannot be compared with a baseline, and undecided if it could be but does not count.
    ``differences`` are the keys in which the run differs from the published configuration.
    """
    if profiled or not published:
        reason = "profiled runs are not judged" if profiled else "no baseline is published for this run"
        return Judgement(verdict=None, reason=reason)
    reasons = {
        f"not comparable with the baseline: {', '.join(differences)} differ from the recipe": bool(differences),
        "the run did not complete": not completed,
        "the loss was NaN, so the run trained nothing": loss_nan,
        missing_window: bool(missing_window),
    }
    reason = next((reason for reason, applies in reasons.items() if applies), "")
    return Judgement(verdict="undecided", reason=reason) if reason else None


def judge_set(candidates: Sequence[Candidate], published_s: float | None, tolerance: float) -> Judgement:
    """Judge the repeats of a run together, without those that do not count, as long as one remains."""
    counted = {index: each.repeat for index, each in enumerate(candidates) if each.repeat and not each.objection}
    objections = [each.objection for each in candidates if each.objection]
    if published_s is None or not counted:
        return (
            objections[0] if objections else Judgement(verdict="undecided", reason="there is no step time to compare")
        )
    judgement = judge_repeats(list(counted.values()), published_s, tolerance)
    left_out = [list(counted)[index] for index in judgement.left_out]
    for index, each in enumerate(candidates):
        if each.objection:
            judgement = add_clause(judgement, f"{each.name} is left out: {each.objection.reason}")
            left_out.append(index)
    return attrs.evolve(judgement, left_out=tuple(sorted(left_out)))


def describe_missing_window(
    summary: Summary, steps: Sequence[Step], steady: SteadyState | None, published_s: float | None
) -> str:
    """Return why a log has no mean over the window, and the steady state that it has instead."""
    steady_text = f"there is no steady state, because fewer than {LEAST_STEPS} steps have a time"
    if steady:
        ratio = f", {steady.step_time_s / published_s:.3f} x the published step time" if published_s else ""
        numbers = f"steps {steady.first} to {steady.last}"
        steady_text = f"the steady state, {numbers}, takes {steady.step_time_s:.4g} s per step{ratio}"
    return f"{_describe_missing_steps(summary, steps)}; {steady_text}"


def _describe_missing_steps(summary: Summary, steps: Sequence[Step]) -> str:
    contained = f"{steps[0].step} to {steps[-1].step}"
    if summary.window == "last":
        known = summary.step_time_s is not None
        return (
            f"the last step of the run is not in the log (it has {contained})" if known else "the last step has no time"
        )
    first, last = summary.window
    window = f"step {first} is" if first == last else f"steps {first} to {last} are"
    if not summary.printed:
        return f"{window} not in the log (it has {contained})"
    return f"{window} not all measured (the log has {contained})"
