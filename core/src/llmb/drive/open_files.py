"""How many files this process may have open."""

from __future__ import annotations

import resource

SPARE_FILES = 256  # for everything else


def allow_open_files(wanted: int) -> None:
    """Let this process open that many files besides the usual ones, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        highest = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
