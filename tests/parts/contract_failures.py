"""Contract tests of a plugin with a planted error, run inside a test."""

from __future__ import annotations

from collections.abc import Collection

import pytest


def names_of(tests: object) -> set[str]:
    """Return the names of all contract tests."""
    return {name for name in dir(tests) if name.startswith("test_")}


def find_failures(tests: object, names: Collection[str] | None = None) -> dict[str, str]:
    """Run the contract tests of these names, or all. Return the messages of those that fail, by name."""
    found = {}
    for name in sorted(names_of(tests) if names is None else names):
        try:
            getattr(tests, name)()
        except pytest.fail.Exception as failure:
            found[name.removeprefix("test_")] = str(failure)
        except pytest.skip.Exception:
            continue
    return found
