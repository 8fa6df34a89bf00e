"""What frameworks refuse of a run in the same words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from llmb.values.errors import Fault
from llmb.values.run import Run

DOTTED_KEY = re.compile(r"[^\s=.]+(\.[^\s=.]+)*")


def degree_faults(run: Run[Any], names: Iterable[str], *, why: str = "") -> Iterator[Fault]:
    """A fault for each of these kinds of parallelism that is on, with the reason why it cannot be."""
    for name in names:
        if (degree := getattr(run.parallelism, name)) not in (None, 1):
            message = f"is {degree}, and {why}" if why else f"is {degree}"
            yield Fault(message=message, key=f"parallelism.{name}", expected="1 with this recipe")


def decided_faults(
    names: Iterable[str], decided: Mapping[str, str], *, table: str = "framework.config"
) -> Iterator[Fault]:
    """What `decided_elsewhere` says of each of these keys of a table of the spec."""
    for name in names:
        if fault := decided_elsewhere(name, decided, key=f"{table}.{name}"):
            yield fault


def decided_elsewhere(name: str, decided: Mapping[str, str], *, key: str) -> Fault | None:
    """The fault of a trainer's setting that is none, that the rest of a spec decides, or that holds such a one.

    ``name`` is dotted, as ``decided`` has them: that maps such settings, or the table that they are in, to what decides
    them; nothing, where nobody may. ``key`` is the setting as the spec has it.
    """
    if not DOTTED_KEY.fullmatch(name):
        return Fault(message="is not a key", key=key, expected="names with dots between them, without blanks")
    for each, by in decided.items():
        if name == each or name.startswith(f"{each}."):
            expected = f"{by} in its place" if by else "no such key"
            return Fault(message="is decided by the rest of the spec", key=key, expected=expected)
        if each.startswith(f"{name}."):
            message = f"holds {each}, which is decided by the rest of the spec"
            return Fault(message=message, key=key, expected="the keys that it holds, one by one")
    return None


def decided_env(run: Run[Any], decided: Mapping[str, str]) -> Iterator[Fault]:
    """A fault for each variable of the spec's [env] that the framework sets itself and cannot do without.

    ``decided`` maps the names of such variables to why, as the end of a sentence.
    """
    for name, why in decided.items():
        if name in run.env:
            yield Fault(message=f"cannot be set: {why}", key=f"env.{name}", expected="no such key")
