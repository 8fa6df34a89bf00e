"""Numbers, times and names as a reader expects them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from llmb import ReportedSet, counted

FAMILY = ("recipe", "gpu_type", "dtype")
"""The parts of a configuration that a page shares in most cases."""


def number(value: float | None) -> str:
    """Return a number with four significant digits and thousands separated, or a dash if it is unknown."""
    if value is None:
        return "\N{EN DASH}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:#.4g}".rstrip(".") if abs(value) >= 1e-4 or value == 0 else f"{value:.3e}"


def seconds(value: float) -> str:
    """Return a time in seconds with its unit."""
    return f"{number(value)} s"


def ratio(value: float | None) -> str:
    """Return a ratio with three decimals."""
    return number(None) if value is None else f"{value:.3f}"


def _moment(created: str) -> str:
    """Return a recorded time to the minute."""
    try:
        return datetime.fromisoformat(created).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return created


def period(times: Sequence[str]) -> str:
    """Return the first and the last of recorded times, in UTC."""
    known = sorted(each for each in times if each)
    if not known:
        return ""
    first, last = _moment(known[0]), _moment(known[-1])
    if first == last:
        return f"{first} UTC"
    last = last.rpartition(" ")[2] if first[:10] == last[:10] else last
    return f"{first} to {last} UTC"


def page_title(sets: Sequence[ReportedSet]) -> str:
    """Return the recipes of all sets, their GPU types and dtypes. Many recipes are counted."""
    recipes, gpu_types, dtypes = (list(dict.fromkeys(getattr(each, part) for each in sets)) for part in FAMILY)
    named = counted(len(recipes), "recipe") if len(recipes) > 2 else " and ".join(recipes)
    return f"{named} on {', '.join(gpu_types)}, {', '.join(dtypes)}"


def titles(sets: Sequence[ReportedSet]) -> list[str]:
    """Return the configuration of each set, without what all sets have in common.

    Add the sizes of model and batch if sets of one name differ in them, because their steps do different work.
    """
    names = [", ".join(filter(None, (name, each.title))) for name, each in zip(families(sets), sets, strict=True)]
    sizes = [[(key, value) for key, value in each.runs[0].settings.items() if _is_size(key)] for each in sets]
    shared: dict[str, set[tuple[str, str]]] = {}
    for name, own in zip(names, sizes, strict=True):
        if own:  # a damaged record has no settings
            shared.setdefault(name, set(own)).intersection_update(own)
    return [
        ", ".join((name, *(f"{key}={value}" for key, value in own if (key, value) not in shared[name])))
        for name, own in zip(names, sizes, strict=True)
    ]


def _is_size(key: str) -> bool:
    """Check whether a setting is a size of the model or the batch."""
    return key.startswith("model.") or key == "parallelism.global_batch_size"


def families(sets: Sequence[ReportedSet]) -> list[str]:
    """Return recipe, GPU type and dtype of each set, without those that all sets have in common."""
    differing = [part for part in FAMILY if len({getattr(each, part) for each in sets}) > 1]
    return [" ".join(getattr(each, part) for part in differing) for each in sets]


def labels(sets: Sequence[ReportedSet]) -> list[str]:
    """Return a label for each set: its configuration, and if others have the same one, the id of its first run."""
    names = titles(sets)
    return [
        f"{name} ({each.runs[0].run_id.partition('-')[0]})" if names.count(name) > 1 else name
        for name, each in zip(names, sets, strict=True)
    ]
