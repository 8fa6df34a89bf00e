"""The attempts of a job and its goodput, as rows of text."""

from __future__ import annotations

from datetime import UTC, datetime

import llmb
from llmb.cli.views.numbers import format_number
from llmb.cli.views.telemetry import telemetry_rows

LEAST_S = 0.1
"""Lost time that is named, in seconds."""


def job_rows(result: llmb.RunResult) -> list[tuple[str, str]]:
    """Return a row for each attempt if there are several or one names the next job, and a row for the goodput."""
    worth_showing = len(result.attempts) > 1 or any(each.followed_by for each in result.attempts)
    attempts = result.attempts if worth_showing else ()
    rows = [(f"attempt {each.attempt}", _describe_attempt(each)) for each in attempts]
    rows += [("goodput", _describe_goodput(result.wall_time))] if result.wall_time else []
    return [*rows, *(telemetry_rows(result.telemetry) if result.telemetry else [])]


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
        ("start-up and exit", wall.other_s),
    )
    lost = ", ".join(f"{name} {format_number(seconds, 's')}" for name, seconds in parts if seconds >= LEAST_S)
    share = f"{100 * wall.goodput:.1f} % of {format_number(wall.wall_s, 's')}"
    return f"{share}; lost to {lost}" if lost else share
