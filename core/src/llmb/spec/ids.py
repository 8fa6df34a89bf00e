"""Names of runs."""

from __future__ import annotations

import re
import secrets

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without the characters that are mistaken for one another


def new_run_id(name: str) -> str:
    """A run id: five random characters, which are enough to type, and then what the run is."""
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(5))
    return f"{prefix}-{re.sub(r'[^a-z0-9.]+', '-', name.lower()).strip('-')}"
