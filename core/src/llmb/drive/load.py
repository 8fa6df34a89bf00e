"""A workload spec to its runs, with what the core and the plugins refuse told in one answer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from llmb.planning import refusals
from llmb.spec.load import load_document
from llmb.values.workload import Workload


def load(path: str | Path, *, overrides: str | Iterable[str] = (), target: str | None = None) -> Workload:
    """Load a workload spec.

    ``overrides``, one or several, are ``key=value`` with dotted keys, the value in TOML, else a string; ``target``
    names a table of the targets file. Nothing is started and nothing is written. Raises SpecError with every fault
    found.
    """
    overrides = [overrides] if isinstance(overrides, str) else overrides
    return load_document(path, refusals, overrides=overrides, target=target)
