"""Verdict on a run: a reason that prevents one, or else the comparison of its repeats with the published step time.

The margin separates a slow system from noise. A repeat does not count if its window differs from its own steady state,
for example because a checkpoint was written in the window.
"""

import math
from collections.abc import Sequence

import attrs

from llmb.analysis.margins import Group, margin_of_mean
from llmb.analysis.measuring_window import MeasuredWindow, Summary
from llmb.analysis.repeats_to_settle import MAX_REPEATS, repeats_to_settle
from llmb.analysis.steady_state import MIN_STEPS, SteadyState
from llmb.values.run_states import Verdict
from llmb.values.steps import Step
from llmb.values.texts.error_text import counted, first_names

TOLERANCE = 0.05
"""The default of `measure.tolerance`: the limit of the ratio is 1 + tolerance."""

ROUNDING = 1e-9
"""Tolerance of floating point, so that a step time exactly at the limit passes."""

UNKNOWN_NOISE = 0.01
"""Relative noise of a step that is assumed if the log has too few steps to measure it."""

INCOMPARABLE = "not comparable with the baseline"
"""The beginning of the objection to a run of another configuration."""

MAX_NAMED = 4
"""The most repeats that a reason names."""

TOO_UNCERTAIN = f"not even {MAX_REPEATS} more repeats would settle it"


@attrs.frozen(kw_only=True)
class Repeat:
    """The window of one run, and its steady state, which is None if the log has too few steps."""

    window: MeasuredWindow
    steady_state: SteadyState | None
    name: str = "the run"

    @property
    def noise(self) -> float:
        """The relative standard error of the mean over the window."""
        if self.steady_state is None:
            return UNKNOWN_NOISE / math.sqrt(self.window.count)
        return self.steady_state.relative_noise(self.window.count)

    @property
    def is_off(self) -> bool:
        """True if the window does not represent the steady state."""
        steady, window = self.steady_state, self.window
        return steady is not None and steady.differs_from(window.step_time_s, window.count)


def windows_of(repeats: Sequence[Repeat]) -> Group:
    """Return the mean step times of repeats over their windows."""
    return Group(times_s=[each.window.step_time_s for each in repeats], noises=[each.noise for each in repeats])


def steady_states_of(repeats: Sequence[Repeat]) -> Group:
    """Return the steady states of repeats, and the window of a repeat that has none."""
    return Group(
        times_s=[(each.steady_state or each.window).step_time_s for each in repeats],
        noises=[
            each.steady_state.relative_noise(each.steady_state.count) if each.steady_state else each.noise
            for each in repeats
        ],
    )


@attrs.frozen(kw_only=True)
class Judgement:
    """A verdict and its reason. The other values are None if the step time was not judged.

    ``interval`` is the ratio minus and plus its margin. ``more_repeats`` is how many more repeats would settle an
    undecided verdict, 0 if too many, None if repeats would not help. ``left_out`` has the indices of repeats.
    """

    verdict: Verdict | None
    reason: str
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    more_repeats: int | None = None
    left_out: tuple[int, ...] = ()


def judge_step_times(repeats: Sequence[Repeat], published_s: float, tolerance: float) -> Judgement:
    """Judge at least one repeat against the published step time (s).

    If the windows of all repeats are off their steady states, windows and steady states must give the same verdict.
    """
    kept = [repeat for repeat in repeats if not repeat.is_off]
    judgement = _judge_group(windows_of(kept or repeats), published_s, tolerance)
    if any(repeat.steady_state is None for repeat in repeats):
        judgement = add_clause(judgement, "the noise is assumed, because a log has fewer than 8 step times")
    if not kept:
        return _compare_with_steady_states(judgement, repeats, published_s, tolerance)
    left_out = tuple(index for index, repeat in enumerate(repeats) if repeat.is_off)
    for index in left_out:
        judgement = add_clause(judgement, f"{repeats[index].name} is left out: {describe_difference(repeats[index])}")
    return attrs.evolve(judgement, left_out=left_out)


def describe_difference(repeat: Repeat) -> str:
    """Return how far a window is off its steady state, and the likely cause."""
    window, steady = repeat.window, repeat.steady_state
    assert steady  # a window is off only if there is a steady state
    steps = f"step {window.last}" if window.first == window.last else f"steps {window.first} to {window.last}"
    ratio = window.step_time_s / steady.step_time_s
    cause = "it may include a checkpoint" if ratio > 1 else "its step times may be incomplete"
    return (
        f"the window ({steps}, {window.step_time_s:.4g} s) took {ratio:.3g} x the steady state "
        f"({steady.step_time_s:.4g} s, steps {steady.first} to {steady.last}); {cause}"
    )


def add_clause(judgement: Judgement, clause: str) -> Judgement:
    """Return the judgement with one more clause in its reason."""
    return attrs.evolve(judgement, reason=f"{judgement.reason}; {clause}")


def _judge_group(group: Group, published_s: float, tolerance: float) -> Judgement:
    """Judge the mean of the step times of repeats."""
    ratio, limit = group.mean_s / published_s, 1 + tolerance
    margin = ratio * margin_of_mean(group)
    low, high = ratio - margin, ratio + margin
    shown = [_format_ratio(value, limit) for value in (ratio, low, high)]
    judgement = Judgement(
        verdict="undecided",
        reason=f"ratio {shown[0]}, between {shown[1]} and {shown[2]}; the limit is {limit:g}",
        ratio=ratio,
        interval=(low, high),
    )
    if high <= limit + ROUNDING:
        advice = f"faster by more than {100 * tolerance:g} %, check that the same work was done"
        judgement = attrs.evolve(judgement, verdict="pass")
        return add_clause(judgement, advice) if ratio < 1 - tolerance - ROUNDING else judgement
    if low > limit + ROUNDING:
        return attrs.evolve(judgement, verdict="fail")
    more = repeats_to_settle(group, abs(ratio - limit) / ratio)
    advice = f"about {counted(more, 'more repeat')} would settle it" if more else TOO_UNCERTAIN
    return attrs.evolve(add_clause(judgement, advice), more_repeats=more)


def _compare_with_steady_states(
    judgement: Judgement, repeats: Sequence[Repeat], published_s: float, tolerance: float
) -> Judgement:
    """Judge the steady states of repeats whose windows are all off, and compare the two verdicts."""
    steady = _judge_group(steady_states_of(repeats), published_s, tolerance)
    difference = describe_difference(repeats[0])
    if len(repeats) > 1:
        difference = f"no window represents its steady state; in {repeats[0].name}, {difference}"
    if steady.verdict == judgement.verdict:
        return add_clause(judgement, difference)
    return attrs.evolve(judgement, verdict="undecided", reason=difference, more_repeats=None)


def _format_ratio(ratio: float, limit: float) -> str:
    """Return a ratio with three decimals, or with four if it would look like the limit."""
    text = f"{ratio:.3f}"
    return f"{ratio:.4f}" if float(text) == limit and abs(ratio - limit) > ROUNDING else text


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
    cause: str = "",
    loss_nan: bool = False,
    missing_window: str = "",
    invalid_step_time: str = "",
) -> Judgement | None:
    """Return the first reason that prevents a verdict on a run's step time, or None.

    The verdict is None if no baseline applies, and undecided if one does but the run does not count.
    ``differences`` are the keys in which the run differs from the published configuration. ``cause`` is why the run did
    not complete, if that is known. ``invalid_step_time`` is why the step time is wrong.
    """
    if profiled or not published:
        reason = "profiled runs are not judged" if profiled else "no baseline is published for this run"
        return Judgement(verdict=None, reason=reason)
    if differences:
        verb = "differs" if len(differences) == 1 else "differ"
        reason = f"{INCOMPARABLE}: {', '.join(differences)} {verb} from the recipe"
    elif not completed:
        reason = f"the run did not complete{f': {cause}' if cause else ''}"
    elif loss_nan:
        reason = "the loss was NaN, so the run trained nothing"
    else:
        reason = missing_window or invalid_step_time
    return Judgement(verdict="undecided", reason=reason) if reason else None


def judge_set(candidates: Sequence[Candidate], published_s: float | None, tolerance: float) -> Judgement:
    """Judge the repeats of a run together, without those that do not count.

    If none of several repeats counts, all are left out. Without a baseline, no repeat is judged and none is left out.
    """
    kept = {index: each.repeat for index, each in enumerate(candidates) if each.repeat and not each.objection}
    if published_s is None or not kept:
        judgement = _join_objections(candidates)
        none_counts = judgement.verdict == "undecided" and len(candidates) > 1
        return attrs.evolve(judgement, left_out=tuple(range(len(candidates)))) if none_counts else judgement
    judgement = judge_step_times(list(kept.values()), published_s, tolerance)
    left_out = [list(kept)[index] for index in judgement.left_out]
    for index, each in enumerate(candidates):
        if each.objection:
            judgement = add_clause(judgement, f"{each.name} is left out: {each.objection.reason}")
            left_out.append(index)
    return attrs.evolve(judgement, left_out=tuple(sorted(left_out)))


def _join_objections(candidates: Sequence[Candidate]) -> Judgement:
    """Return the objections to all repeats, undecided if one of them is. Each different reason names its repeats."""
    names: dict[str, list[str]] = {}
    objections = [(each.name, each.objection) for each in candidates if each.objection]
    for name, objection in objections:
        names.setdefault(objection.reason, []).append(name)
    if not objections:
        return Judgement(verdict="undecided", reason="there is no step time to compare")
    if len(names) == 1:
        return objections[0][1]
    reasons = [f"{first_names(repeats, MAX_NAMED)}: {reason}" for reason, repeats in names.items()]
    verdict = next((objection.verdict for _, objection in objections if objection.verdict), None)
    return Judgement(verdict=verdict, reason="; ".join(reasons))


def describe_missing_window(
    summary: Summary, steps: Sequence[Step], steady: SteadyState | None, published_s: float | None
) -> str:
    """Return why a log has no mean over the window, and the steady state that it has instead."""
    steady_text = f"there is no steady state, because fewer than {MIN_STEPS} steps have a time"
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
