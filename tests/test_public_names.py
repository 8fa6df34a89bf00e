"""The public names of llmb, compared with a snapshot: their signatures, fields and methods, read by griffe from source.

``LLMB_UPDATE=1`` writes the snapshot. docs/stability.md states which changes need which version.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

import griffe
from parts.repository import ROOT

import llmb

SNAPSHOT = ROOT / "tests/public_names.txt"


def describe(name: str, value: griffe.Object | griffe.Alias) -> Iterator[str]:
    """Yield the lines of a public name: its signature, or its type, and the public members of a class."""
    if value.is_function:
        yield value.signature(name=name)
    elif value.is_class:
        yield f"class {name}({', '.join(map(str, value.bases))})"
        for member, each in sorted(value.members.items()):
            if not member.startswith("_"):
                yield from describe(f"{name}.{member}", each)
    else:
        annotation = f": {value.annotation}" if value.annotation else ""
        yield f"{name}{annotation}" + (f" = {value.value}" if value.value else "")


def public_names() -> str:
    module = griffe.load("llmb", search_paths=[ROOT / "core/src"], allow_inspection=False)
    found = (describe(name, module[name].final_target) for name in sorted(llmb.__all__))
    return "".join(f"{' '.join(line.split())}\n" for lines in found for line in lines)


def test_the_public_names_are_those_of_the_snapshot() -> None:
    names = public_names()
    if os.environ.get("LLMB_UPDATE"):
        SNAPSHOT.write_text(names)
    changes = difflib.unified_diff(SNAPSHOT.read_text().splitlines(), names.splitlines(), "snapshot", "source", n=0)
    lines = [line for line in changes if not line.startswith(("---", "+++", "@@"))]
    assert lines == [], "if the change is intended, write it to the changelog and run this test with LLMB_UPDATE=1"
