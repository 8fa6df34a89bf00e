"""The errors of llmb: one class for each kind. Each error prints one line. Any other exception is a bug."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import attrs


@attrs.frozen(kw_only=True)
class Fault:
    """One error: message, location, expected value and closest valid name.

    ``lines`` are an example of the lines that a file lacks, which are printed below the error.
    """

    message: str
    file: str | None = None
    key: str | None = None
    expected: str | None = None
    nearest: str | None = None
    lines: str = ""

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.file, self.key, self.message) if part)
        if self.expected:
            text += f"; expected {self.expected}"
        if self.nearest:
            text += f" (did you mean {self.nearest!r}?)"
        return "\n  ".join((" ".join(text.split()), *self.lines.splitlines()))


class LlmbError(Exception):
    """Errors of a user, or of a machine, which print one line each and never a traceback.

    Raise TypeError without an argument, and for an argument that is neither a `Fault` nor a text.
    """

    exit_code = 2

    def __init__(self, *faults: Fault | str) -> None:
        name = type(self).__name__
        if not faults:
            raise TypeError(f"{name} without an error in it; raise it only if there is one")
        if wrong := [type(fault).__name__ for fault in faults if not isinstance(fault, Fault | str)]:
            raise TypeError(f"{name} takes errors one by one: {name}(*errors), and no {wrong[0]}")
        self.faults = tuple(fault if isinstance(fault, Fault) else Fault(message=fault) for fault in faults)
        super().__init__("\n".join(map(str, self.faults)))


class SpecError(LlmbError):
    """A workload spec, an argument or a targets file is invalid."""


class RecipeError(LlmbError):
    """A recipe is missing or invalid."""


class PluginError(LlmbError):
    """A plugin is missing, broken, installed twice, or written for a newer llmb."""


class PluginWarning(UserWarning):
    """A broken plugin was ignored, because the command does not need it."""


class LogError(LlmbError):
    """A log cannot be read."""


class RecordError(LlmbError):
    """The record of a run is missing, or cannot be read or written."""


class TargetError(LlmbError):
    """The target cannot be reached, or rejects a request. This never means that something is absent on the target."""

    exit_code = 4


class UnreachableError(TargetError):
    """The connection to a target that responded before is lost. Nothing was done there; a later attempt may succeed."""


class BusyError(TargetError):
    """Another process holds a lock on the target for long. Nothing was done there; a later attempt may succeed."""


class UnreadableFileError(TargetError):
    """A file on the target cannot be read, although the target responds. Other files may be readable."""


class UnknownOutcomeError(TargetError):
    """The connection was lost during a command. The outcome of the command is unknown."""


@contextmanager
def collect_errors(errors: list[Fault], kind: type[LlmbError] = SpecError) -> Iterator[None]:
    """Append the errors of an exception of this kind instead of raising it, so that the code after the block runs."""
    try:
        yield
    except kind as error:
        errors.extend(error.faults)


def located(faults: Iterable[Fault], file: str | None) -> tuple[Fault, ...]:
    """Return the errors with this file, except those that already have a file."""
    return tuple(attrs.evolve(fault, file=fault.file or file) for fault in faults)
