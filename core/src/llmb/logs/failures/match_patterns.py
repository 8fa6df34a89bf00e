"""Regular expressions of signatures within a time limit, because those of a plugin or a pack may backtrack."""

from __future__ import annotations

import re
import warnings

from llmb.logs.time_limit import TooSlowError, time_limit
from llmb.values.errors import PluginWarning
from llmb.values.failure import Signature

LIMIT_S = 5.0
"""Seconds that an expression has for one place in a log."""


class PatternMatcher:
    """Matches patterns of signatures. A pattern that once takes too long is left out from then on, with a warning."""

    def __init__(self) -> None:
        self._too_slow: set[str] = set()

    def match(self, signature: Signature, text: str, last: int) -> re.Match[str] | None:
        """Return the match of a signature's pattern that begins at one of the characters 0 to ``last``, or None."""
        if signature.pattern in self._too_slow:
            return None
        pattern = re.compile(signature.pattern)
        starts = range(last + 1)  # search() would try all lines of the text, which takes long in each hit
        try:
            with time_limit(LIMIT_S, signature.pattern):
                return next(filter(None, (pattern.match(text, start) for start in starts)), None)
        except TooSlowError:
            self._too_slow.add(signature.pattern)
            _warn("pattern", signature)
            return None


def cause_in(signature: Signature, text: str) -> str:
    """Return the cause with the detail in a text, or without it, with a warning, if the expression takes too long."""
    try:
        with time_limit(LIMIT_S, signature.detail):
            return signature.cause_in(text)
    except TooSlowError:
        _warn("detail", signature)
        return signature.cause


def _warn(field: str, signature: Signature) -> None:
    problem = f"takes more than {LIMIT_S:g} s for one line, because it backtracks; make it atomic"
    warnings.warn(PluginWarning(f"left out: {field} of the cause {signature.cause!r} {problem}"), stacklevel=2)
