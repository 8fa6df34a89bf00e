"""Remedies of ``llmb doctor`` that set a key of the spec."""

from collections.abc import Sequence


def set_in_target(key: str, values: Sequence[str]) -> str:
    """Return the line of the spec that sets a key to the first of these values, with the other values."""
    others = f", or to {', '.join(values[1:])}" if len(values) > 1 else ""
    return f'set `{key} = "{values[0]}"` in [target]{others}' if values else f"set {key} in [target]"


def or_set_in_target(key: str, values: Sequence[str]) -> str:
    """Return the end of a remedy that proposes to set a key as the alternative, or "" if there is no value."""
    return f", or {set_in_target(key, values)}" if values else ""
