"""One class per kind of fault. Each prints as one line per fault; anything else that is raised is a bug."""

from __future__ import annotations

from collections.abc import Iterable

import attrs


@attrs.frozen(kw_only=True)
class Fault:
    """One thing that is wrong: what, where, what was expected, and the nearest name that would be right."""

    message: str
    file: str | None = None
    key: str | None = None
    expected: str | None = None
    nearest: str | None = None

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.file, self.key, self.message) if part)
        if self.expected:
            text += f"; expected {self.expected}"
        if self.nearest:
            text += f" (did you mean {self.nearest!r}?)"
        return " ".join(text.split())


class LlmbError(Exception):
    """What a user did, or what a machine refused: told in one line per fault, never as a traceback."""

    exit_code = 2

    def __init__(self, *faults: Fault | str) -> None:
        self.faults = tuple(fault if isinstance(fault, Fault) else Fault(message=fault) for fault in faults)
        super().__init__("\n".join(map(str, self.faults)))


class SpecError(LlmbError):
    """A workload spec, an argument or a targets file asks for what cannot be."""


class RecipeError(LlmbError):
    """A recipe is not there, or its file is wrong."""


class PluginError(LlmbError):
    """A plugin is missing, broken, duplicate or too new."""


class PluginWarning(UserWarning):
    """A plugin that nobody named does not work, and is left out."""


class LogError(LlmbError):
    """A log cannot be read."""


class RecordError(LlmbError):
    """The record of a run is not there, or cannot be read or written."""


class TargetError(LlmbError):
    """The target cannot be reached, or refuses. It never means that something is absent there."""

    exit_code = 4


class UnknownOutcomeError(TargetError):
    """The connection was lost in the middle of a command: whether it was done is not known."""


def located(faults: Iterable[Fault], file: str | None) -> tuple[Fault, ...]:
    """The same faults, with the file named where it was not."""
    return tuple(attrs.evolve(fault, file=fault.file or file) for fault in faults)
