"""[profile] against the run that it is of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from llmb.values.error_text import counted
from llmb.values.errors import Fault
from llmb.values.recipe import Recipe
from llmb.values.run import Profile, Run


def with_published_steps(profile: Profile | None, recipe: Recipe) -> Profile | None:
    """The profile with the steps that the recipe's publisher captures, where the spec does not say."""
    if profile is None or profile.tool not in recipe.captured_steps:
        return profile
    start, stop = recipe.captured_steps[profile.tool]
    return attrs.evolve(
        profile,
        start_step=start if profile.start_step is None else profile.start_step,
        stop_step=stop if profile.stop_step is None else profile.stop_step,
    )


def step_faults(run: Run[Any]) -> Iterator[Fault]:
    """Steps to capture that this run does not have."""
    if run.profile is None:
        return
    first = 0 if run.profile.start_step is None else run.profile.start_step
    last = run.steps if run.profile.stop_step is None else run.profile.stop_step
    if not 0 <= first < last <= run.steps:
        message = f"steps {first} to {last} are no range within the {counted(run.steps, 'step')} of the run"
        yield Fault(message=message, key="profile", expected=f"0 <= start_step < stop_step <= {run.steps}")


def rank_faults(run: Run[Any]) -> Iterator[Fault]:
    """Ranks to capture that this run does not have."""
    if run.profile is None:
        return
    if wrong := [rank for rank in run.profile.ranks or () if not 0 <= rank < run.gpus]:
        message = (
            f"has {', '.join(map(str, wrong))}, and the ranks of {counted(run.gpus, 'GPU')} are 0 to {run.gpus - 1}"
        )
        yield Fault(message=message, key="profile.ranks", expected=f"ranks below {run.gpus}")
    if run.profile.ranks == ():
        yield Fault(message="names no rank", key="profile.ranks", expected="ranks, or no such key")


def nsys_only_faults(run: Run[Any]) -> Iterator[Fault]:
    """What is asked of NCCL's trace and only nsys can do."""
    if run.profile is None or run.profile.tool != "nccl-trace":
        return
    for field in attrs.fields(Profile):
        if field.name != "tool" and getattr(run.profile, field.name) != field.default:
            message = "is for nsys, and NCCL traces every rank from start to end"
            yield Fault(message=message, key=f"profile.{field.name}", expected="no such key")
