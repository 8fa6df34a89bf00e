"""Copies of a log among the repeats of a grade."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from llmb.analysis.steady_state import LEAST_STEPS
from llmb.analysis.verdict import Judgement
from llmb.judging.graded_run import GradedRun


def object_to_copies(runs: Sequence[GradedRun]) -> list[GradedRun]:
    """Return the runs with an objection to each copy of an earlier log, which would narrow the margin for nothing."""
    names: dict[tuple[tuple[float | None, float | None], ...], str] = {}
    checked = []
    for run in runs:
        content = tuple((step.time_s, step.loss) for step in run.log.steps)
        original = names.setdefault(content, run.name) if len(content) >= LEAST_STEPS else run.name
        copied = Judgement(verdict="undecided", reason=f"the same log as {original}")
        checked.append(run if original == run.name else attrs.evolve(run, objection=run.objection or copied))
    return checked
