"""Names of runs."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without the characters that are mistaken for one another


def new_run_id(name: str) -> str:
    """A run id: five random characters, which are enough to type, and then what the run is."""
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(5))
    return f"{prefix}-{re.sub(r'[^a-z0-9.]+', '-', name.lower()).strip('-')}"


def distinct_run_ids() -> Callable[[str], str]:
    """Makes run ids that differ from one another, however many runs a sweep has."""
    made: set[str] = set()

    def make(name: str) -> str:
        while (run_id := new_run_id(name)) in made:
            pass
        made.add(run_id)
        return run_id

    return make
