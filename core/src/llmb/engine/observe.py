"""What the engine tells while it works; a command line shows it, a library may ignore it."""

from __future__ import annotations

from typing import Protocol

import attrs

from llmb.values.status import RunState


@attrs.frozen(kw_only=True)
class Progress:
    """How a run stands: state, phase, steps done of how many, step time and time left in seconds, MFU as a fraction."""

    run_id: str
    name: str
    state: RunState
    phase: str = ""
    step: int | None = None
    steps: int | None = None
    step_time_s: float | None = None
    mfu: float | None = None
    left_s: float | None = None
    detail: str = ""


class Observer(Protocol):
    """Told of everything that changes. Exceptions that it raises end the drive; the runs go on."""

    def progress(self, progress: Progress) -> None:
        """A run changed its state, its phase or its step."""

    def message(self, text: str) -> None:
        """Something that people should know, such as a target that cannot be reached for now."""


class Silent:
    """Tells nobody."""

    def progress(self, progress: Progress) -> None:
        """Ignored."""

    def message(self, text: str) -> None:
        """Ignored."""
