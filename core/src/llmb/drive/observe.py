"""What the engine tells while it works; a command line shows it, a library may ignore it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from llmb.drive.events import Event, Note, Progress

ToldT = TypeVar("ToldT")


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


class EventCollector:
    """Observer that keeps what it receives as events, for a session that yields them."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def progress(self, progress: Progress) -> None:
        """Keep the event."""
        self._events.append(progress)

    def message(self, text: str) -> None:
        """Keep the text as a Note."""
        self._events.append(Note(text=text))

    def take(self) -> list[Event]:
        """Return the events since the last call."""
        taken, self._events = self._events, []
        return taken
