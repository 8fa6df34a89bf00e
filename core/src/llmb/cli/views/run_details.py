"""Rows of text on one run: progress, steady state, slow ranks, cause of a failure, attempts, goodput, telemetry."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import llmb
from llmb.cli.views.numbers import format_age, format_number, four_digits
from llmb.cli.views.plain_view import describe_speed

RECENT_S = 60.0
"""Age of a recorded state that is not named."""

NAMED_SPIKES = 5
"""The number of spikes whose steps are named."""

MAX_DRIFT = 0.1
"""The largest drift of steps that are steady."""

NAMED_RANKS = 8
"""Slow ranks that are named."""

MIN_LOST_S = 0.1
"""Lost time that is named, in seconds."""

MIN_WALL_S = 10.0
"""The shortest job, in seconds, with a row for its goodput, because schedulers record full seconds."""

NAMED_PROBLEMS = 8
"""Lines of problems that are shown. ``--json`` has all."""


def describe_last_progress(result: llmb.RunResult) -> str:
    """Return a text such as ``train, step 120 of 500, 5.6 s/step, 35:00 left (3 h ago)``, or "" if it is unknown."""
    if result.progress is None:
        return ""
    progress, steps = result.progress, result.steps_requested
    limit = f"time limit at about step {progress.limit_step}" if progress.limit_step is not None else ""
    attempt = f"attempt {progress.attempt}" if progress.attempt else ""
    text = ", ".join(filter(None, (attempt, progress.phase, *describe_speed(progress, steps), limit)))
    age = describe_age(result)
    return f"{text} ({age})" if text and age else text


def describe_stale_state(result: llmb.RunResult) -> str:
    """Return when the state was recorded, and how to update it, or "" if it is recent or a process follows the run."""
    if not is_stale(result):
        return ""
    return f"{describe_age(result)}; no process follows the run: `llmb attach {result.run_id}`"


def is_stale(result: llmb.RunResult) -> bool:
    """Check whether the state of a run that has not ended may be outdated, because no process follows the run."""
    return not result.ended and bool(describe_age(result)) and result.followed is False


def describe_age(result: llmb.RunResult) -> str:
    """Return how long ago the record was updated, such as ``3 h ago``, or "" if that is recent or unknown."""
    try:
        age_s = time.time() - datetime.fromisoformat(result.updated or "").timestamp()
    except ValueError:
        return ""
    return format_age(age_s) if age_s >= RECENT_S else ""


def describe_steady_state(state: llmb.SteadyState | None) -> str:
    """Return a text such as ``15.28 s, steps 4 to 50; no spikes, drift +0.1 %``, or "" for None."""
    if state is None:
        return ""
    steps = f"{four_digits(state.step_time_s)} s, steps {state.first} to {state.last}"
    unsteady = ": not steady" if abs(state.drift) > MAX_DRIFT else ""
    return f"{steps}; {_describe_spikes(state)}, drift {round(100 * state.drift, 1) + 0.0:+} %{unsteady}"


def _describe_spikes(state: llmb.SteadyState) -> str:
    if not state.spikes:
        return "no spikes"
    steps = [str(spike.step) for spike in state.spikes]
    if state.spike_period:
        place = f"every {llmb.counted(state.spike_period, 'step')} from step {steps[0]}"
    elif len(steps) <= NAMED_SPIKES:
        place = f"at {'step' if len(steps) == 1 else 'steps'} {', '.join(steps)}"
    else:
        place = f"at steps {steps[0]} to {steps[-1]}"
    return f"{llmb.counted(len(steps), 'spike')} {place} cost {100 * state.spike_share:.1f} % of the time"


def slow_rank_rows(comparison: llmb.RankComparison | None) -> list[tuple[str, str]]:
    """Return the slow hosts, the slow ranks, and what the job would gain without them."""
    if comparison is None:
        return []
    if not comparison.slow_ranks and not comparison.slow_hosts:
        return [("slow ranks", f"none of {comparison.ranks}, over {comparison.steps} steps")]
    hosts = [
        f"{each.host} {_percent(each.excess)} ({llmb.counted(each.ranks, 'rank')})" for each in comparison.slow_hosts
    ]
    named = {each.host for each in comparison.slow_hosts}
    ranks = [_describe_slow_rank(each) for each in comparison.slow_ranks if each.host not in named]
    return [
        ("slow nodes", ", ".join(hosts)),
        ("slow ranks", llmb.first_names(ranks, NAMED_RANKS)),
        ("gain", f"{100 * comparison.gain:.1f} % of the step time without them"),
    ]


def _describe_slow_rank(slow: llmb.SlowRank) -> str:
    parts = ["" if slow.rank is None else f"rank {slow.rank}", slow.host or ""]
    return f"{' on '.join(filter(None, parts)) or 'unknown rank'} {_percent(slow.excess)}"


def _percent(excess: float) -> str:
    return f"+{100 * excess:.1f} %"


def failure_rows(failure: llmb.Failure | None) -> list[tuple[str, str]]:
    """Return the cause, the process that failed first, the line of the log, who can fix the cause, and the remedy."""
    if failure is None:
        return []
    line = f" (line {failure.line})" if failure.line else ""
    return [
        ("cause", failure.cause),
        ("failed on", _describe_process(failure)),
        ("log", f"{failure.evidence}{line}" if failure.evidence else ""),
        ("origin", failure.origin or ""),
        ("remedy", failure.remedy),
    ]


def _describe_process(failure: llmb.Failure) -> str:
    """Return the rank and the host of the process that failed first, or "" if both are unknown."""
    rank = "" if failure.rank is None else f"rank {failure.rank}"
    return ", ".join(filter(None, (rank, failure.host)))


def job_rows(result: llmb.RunResult) -> list[tuple[str, str]]:
    """Return rows for goodput, telemetry and attempts.

    A single attempt has a row only if it names the next job. A short job has a goodput only with several attempts, or
    if it was suspended.
    """
    rows = []
    if len(result.attempts) > 1 or any(each.followed_by for each in result.attempts):
        rows += [(f"attempt {each.attempt}", _describe_attempt(each)) for each in result.attempts]
    wall = result.wall_time
    if wall and (len(result.attempts) > 1 or wall.wall_s >= MIN_WALL_S or wall.suspended_s):
        rows.append(("goodput", _describe_goodput(wall)))
    return rows + (_telemetry_rows(result.telemetry) if result.telemetry else [])


def _describe_attempt(attempt: llmb.Attempt) -> str:
    """Return a text such as ``2026-11-21 01:48:17 UTC, 74 s on node[1-4], preempted``, and the job that followed."""
    begin, duration = "", ""
    if attempt.start is not None:
        begin = f"{datetime.fromtimestamp(attempt.start, UTC):%Y-%m-%d %H:%M:%S} UTC"
        duration = format_number(attempt.end - attempt.start, "s") if attempt.end is not None else ""
    place = f"on {llmb.fold_hosts(attempt.nodes)}" if attempt.nodes else ""
    follower = f"followed by {attempt.followed_by}" if attempt.followed_by else ""
    return ", ".join(filter(None, (begin, f"{duration} {place}".strip(), attempt.cause, follower)))


def _describe_goodput(wall: llmb.WallTime) -> str:
    """Return a text such as ``81.3 % of 612 s; lost to requeues 102 s, start-up and exit 7.1 s``."""
    parts = (
        ("requeues", wall.requeues_s),
        ("checkpoints", wall.checkpoints_s),
        ("spikes", wall.spikes_s),
        ("suspension", wall.suspended_s),
        ("start-up and exit", wall.other_s),
    )
    lost = ", ".join(f"{name} {format_number(seconds, 's')}" for name, seconds in parts if seconds >= MIN_LOST_S)
    share = f"{100 * wall.goodput:.1f} % of {format_number(wall.wall_s, 's')}"
    return f"{share}; lost to {lost}" if lost else share


def _telemetry_rows(telemetry: llmb.Telemetry) -> list[tuple[str, str]]:
    """Return a row of power and energy, and a row for each node and problem."""
    values = (
        (telemetry.power_w, "W per GPU", 1.0),
        (telemetry.energy_per_step_j, "kJ per step", 1e-3),
        (telemetry.tokens_per_joule, "tokens/J", 1.0),
        (telemetry.kwh_per_1t_tokens, "kWh for 1T tokens", 1.0),
    )
    text = ", ".join(format_number(value * scale, unit) for value, unit, scale in values if value is not None)
    rows = [("energy", text)] if text else []
    lines = list(_describe_problems(telemetry))
    rows += [("gpus", line) for line in lines[:NAMED_PROBLEMS]]
    if len(lines) > NAMED_PROBLEMS:
        rows.append(("gpus", f"{llmb.counted(len(lines) - NAMED_PROBLEMS, 'more problem')}; see --json"))
    return rows


def _describe_problems(telemetry: llmb.Telemetry) -> Iterator[str]:
    """Yield a text such as ``n3 GPU 4 slow: SM clock 1410 MHz, median 1755 MHz`` for each node and problem."""
    ordered = sorted(telemetry.problems, key=lambda each: (each.node, each.problem))
    for (node, problem), found in itertools.groupby(ordered, key=lambda each: (each.node, each.problem)):
        gpus = list(found)
        numbers = ", ".join(str(index) for index in sorted({each.gpu for each in gpus}))
        plural = "GPUs" if "," in numbers else "GPU"
        yield f"{node} {plural} {numbers} {problem}: {gpus[0].detail}"
