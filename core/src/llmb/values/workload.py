"""A workload: everything that one spec asks for, ready to be planned."""

from __future__ import annotations

from typing import Any

import attrs

from llmb.values.run import Run, Target


@attrs.frozen(kw_only=True)
class PlacedRun:
    """A run and the target that it goes to. Frameworks see only the run, schedulers only the target and the job."""

    run: Run[Any]
    target: Target[Any]


@attrs.frozen(kw_only=True)
class Workload:
    """The runs of one spec, in the order of its sweep."""

    file: str
    runs: tuple[PlacedRun, ...]
