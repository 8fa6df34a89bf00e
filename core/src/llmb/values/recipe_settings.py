"""The settings of a recipe as a run uses them: with paths for words in braces, and as words of a command."""

import re
from collections.abc import Mapping
from typing import Any

from llmb.values.run import Paths

_WORD = re.compile(r"\{([^{}]*)\}")
"""A word in braces."""


def with_paths(value: Any, paths: Paths, *, names: Mapping[str, str] | None = None) -> Any:
    """Return a setting as plain tables and lists, with a path for each word in braces in its strings.

    ``{run}`` is the run's own folder, ``{cache}`` the folder that all runs share, and ``names`` are further words. The
    string "null" becomes None, because TOML has no null.
    """
    return _with_words(value, {"run": paths.run, "cache": paths.cache, **(names or {})})


def _with_words(value: Any, words: Mapping[str, str]) -> Any:
    kind = type(value)  # faster than isinstance, for the thousands of settings in a sweep
    if kind is str:
        if "{" in value:
            value = _WORD.sub(lambda found: words.get(found[1], found[0]), value)
        return None if value == "null" else value
    if kind in (bool, int, float):
        return value
    if isinstance(value, Mapping):
        return {key: _with_words(item, words) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_words(item, words) for item in value]
    return value


def key_values(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return each setting as one word, ``name=value``, as trainers read it: ``true``, ``null``, ``[0,1]``.

    Strings are not quoted.
    """
    return tuple(f"{name}={_text(value)}" for name, value in settings.items())


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_text, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
