"""A log of the commands that llmb runs on hosts, for ``llmb --verbose``."""

from __future__ import annotations

import logging

SHOWN_LINES = 8
"""Lines at the end of a script that are logged. The lines before define functions."""

_LOGGER = logging.getLogger("llmb.hosts")


def log_command(host: str, script: str) -> None:
    """Log the end of a script that is about to run on a host."""
    if not _LOGGER.isEnabledFor(logging.DEBUG):
        return
    lines = script.strip().splitlines()
    left_out = max(0, len(lines) - SHOWN_LINES)
    more = f" (after {left_out} lines of functions)" if left_out else ""
    _LOGGER.debug("%s runs%s:\n%s", host, more, "\n".join(f"  {line}" for line in lines[left_out:]))
