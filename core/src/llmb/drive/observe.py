"""What the engine tells while it works; a command line shows it, a library may ignore it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import attrs

from llmb.values.job_status import RunState

ToldT = TypeVar("ToldT")


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


class ObserverError(BaseException):
    """What an observer raised, which is its cause. It ends the drive, where other errors hold up one run or site."""


class Unhindered:
    """Passes all on to an observer whose exceptions nobody on the way may take for a run's."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def progress(self, progress: Progress) -> None:
        """Raises ObserverError."""
        self._pass_on(self._observer.progress, progress)

    def message(self, text: str) -> None:
        """Raises ObserverError."""
        self._pass_on(self._observer.message, text)

    @staticmethod
    def _pass_on(tell: Callable[[ToldT], None], told: ToldT) -> None:
        try:
            tell(told)
        except Exception as error:
            raise ObserverError from error
