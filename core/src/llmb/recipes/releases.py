"""The releases in one recipe file: the first release, and the fixes that its publisher made of it."""

from collections.abc import Mapping
from typing import Any

from llmb.values.error_text import invalid_value
from llmb.values.errors import Fault, RecipeError
from llmb.values.frozen import merged

FIXES = "fixes"


def releases_of(tables: Mapping[str, Any], file: str) -> tuple[str, ...]:
    """Return the first release and its fixes, in the order of the file. Raise RecipeError if [fixes] is invalid."""
    return (str(tables.get("release", "")), *_fixes(tables, file))


def at_release(tables: Mapping[str, Any], release: str | None, file: str) -> Mapping[str, Any]:
    """Return the tables at one release; None means the last. Each fix is merged over the releases before it."""
    found: Mapping[str, Any] = {key: value for key, value in tables.items() if key != FIXES}
    for name, changes in _fixes(tables, file).items():
        if found.get("release") == release:
            break
        found = merged(found, {**changes, "release": name})
    return found


def _fixes(tables: Mapping[str, Any], file: str) -> Mapping[str, Mapping[str, Any]]:
    fixes = tables.get(FIXES, {})
    if not isinstance(fixes, Mapping) or not all(isinstance(changes, Mapping) for changes in fixes.values()):
        expected = 'a table for each fix, such as [fixes."25.12.01"]'
        raise RecipeError(Fault(message=invalid_value(fixes), file=file, key=FIXES, expected=expected))
    return fixes
