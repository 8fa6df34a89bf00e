"""Rejection of values that a declared framework does not use: the run would differ from its record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from llmb.plugins.declared.command import used_names
from llmb.plugins.declared.file import DeclaredFile
from llmb.plugins.declared.placeholders import DEGREES
from llmb.values.errors import Fault
from llmb.values.run import Run

EQUIVALENT: Final = {
    "global_batch_size": {"global_batch_size", "gradient_accumulation"},
    "micro_batch_size": {"micro_batch_size", "gradient_accumulation"},
}
"""The placeholders of which each carries a key of the spec."""


def find_unused(file: DeclaredFile, run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for each value of a run that the command does not contain."""
    used = used_names(file) | {*file.degrees}
    for name in DEGREES:
        degree = getattr(run.parallelism, name)
        if degree not in (None, 1) and name not in used:
            yield _unused(f"parallelism.{name}", name, f"{degree} has no effect", "1, or ")
    for key in run.overrides:
        name = key.rpartition(".")[2]
        if name not in DEGREES and not EQUIVALENT.get(name, {name}) & used:
            yield _unused(key, name, "the value has no effect", "no such key, or ")
    if run.profile:
        message = "a declared framework starts no profiler"
        yield Fault(message=message, key="profile", expected="no table [profile], or a framework plugin in Python")
    if run.image and file.venv:
        yield Fault(message="the framework has a virtual environment", key="workload.image", expected="no such key")


def _unused(key: str, name: str, effect: str, otherwise: str) -> Fault:
    place = "command, env or degrees" if name in DEGREES else "command or env"
    message = f"{effect}: the framework's file does not use {{{name}}}"
    return Fault(message=message, key=key, expected=f"{otherwise}{{{name}}} in {place} of the file")
