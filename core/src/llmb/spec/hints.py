"""What faults of a spec say where more is known than the type of a key: its choices, a sweep, that it is a secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from llmb.spec.check import NOT_FOR_RECORDS
from llmb.spec.expand import SWEPT_KEYS
from llmb.values.error_text import MISSING, shown
from llmb.values.errors import Fault

OF_RECIPE = "one that `llmb recipes ADDRESS` lists"
CHOICES = {
    "workload.recipe": "an address that `llmb recipes` lists",
    **dict.fromkeys(("workload.gpu_type", "workload.dtype", "workload.gpus"), OF_RECIPE),
}
"""What keys that must be there are chosen from."""


def with_hints(faults: Iterable[Fault], tables: Mapping[str, Any], schedulers: Sequence[str]) -> list[Fault]:
    """The faults of one combination's tables; ``schedulers`` are the installed ones."""
    choices = {**CHOICES, "target.scheduler": f"one of {', '.join(schedulers)}"} if schedulers else CHOICES
    return [_or_swept(_chosen_from(fault, choices), tables) for fault in _secrets_unseen(list(faults))]


def _chosen_from(fault: Fault, choices: Mapping[str, str]) -> Fault:
    expected = choices.get(fault.key or "")
    return attrs.evolve(fault, expected=expected) if fault.message == MISSING and expected else fault


def _or_swept(fault: Fault, tables: Mapping[str, Any]) -> Fault:
    """A list where one value is due may have been meant as a sweep."""
    name, _, key = (fault.key or "").partition(".")
    table = tables.get(name)
    value = table.get(key) if isinstance(table, Mapping) else None
    if not isinstance(value, list) or fault.message != f"is {shown(value)}" or "list" in (fault.expected or ""):
        return fault
    if name == "workload" and key in SWEPT_KEYS:
        return attrs.evolve(fault, expected=f"{fault.expected}, or a list of such")
    return attrs.evolve(fault, expected=f'{fault.expected}, or "{fault.key}" = {shown(value)} in [sweep]')


def _secrets_unseen(faults: list[Fault]) -> list[Fault]:
    """Of a key that looks like a secret's and is no string: only that it is one, and not which."""
    secrets = {fault.key for fault in faults if fault.message == NOT_FOR_RECORDS}
    typed = {fault.key for fault in faults if fault.key in secrets and fault.message.startswith('is "')}
    return [
        attrs.evolve(fault, message="is a string") if fault.key in typed else fault
        for fault in faults
        if fault.key not in typed or fault.message != NOT_FOR_RECORDS
    ]
