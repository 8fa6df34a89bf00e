"""Regular expressions of signatures within a time limit, because those of a plugin or a pack may backtrack."""

from __future__ import annotations

import re
import warnings
from typing import Final

from llmb.logs.steps.parser_time_limit import TooSlowError, time_limit
from llmb.values.errors import PluginWarning
from llmb.values.failure import Signature

LIMIT_S = 5.0
"""Seconds that an expression has for one place in a log."""

_too_slow: Final[set[str]] = set()
"""Expressions that took too long, which this process searches for no more."""


def match_pattern(signature: Signature, text: str, last: int) -> re.Match[str] | None:
    """Return the match of a signature's pattern that begins at one of the characters 0 to ``last``, or None.

    A pattern that takes too long matches nothing, and is left out with a warning.
    """
    if signature.pattern in _too_slow:
        return None
    pattern = re.compile(signature.pattern)
    starts = range(last + 1)  # search() would try all lines of the text, which takes long in each hit
    try:
        with time_limit(LIMIT_S, signature.pattern):
            return next(filter(None, (pattern.match(text, start) for start in starts)), None)
    except TooSlowError:
        _leave_out("pattern", signature, signature.pattern)
        return None


def cause_in(signature: Signature, text: str) -> str:
    """Return the cause with the detail in a text, or without it if the expression takes too long."""
    if signature.detail in _too_slow:
        return signature.cause
    try:
        with time_limit(LIMIT_S, signature.detail):
            return signature.cause_in(text)
    except TooSlowError:
        _leave_out("detail", signature, signature.detail)
        return signature.cause


def _leave_out(field: str, signature: Signature, expression: str) -> None:
    _too_slow.add(expression)
    problem = f"takes more than {LIMIT_S:g} s for one line, because it backtracks; make it atomic"
    warnings.warn(PluginWarning(f"left out: {field} of the cause {signature.cause!r} {problem}"), stacklevel=2)
