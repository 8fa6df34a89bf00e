"""Durations as users write them, such as "1h30m"."""

import re

DURATION = 'a duration such as "1h", "30m", "1h30m" or "90s", or a number of seconds'
"""The values that `seconds` accepts, for messages."""

_WRITTEN = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def seconds(duration: object) -> int:
    """Return a duration in seconds: ``"1h"``, ``"30m"``, ``"90s"``, ``"1h30m"``, or a number of seconds.

    Raise ValueError, with the expected values as its text, for anything else and for "0s".
    """
    if isinstance(duration, str):
        found = _WRITTEN.fullmatch(duration.replace(" ", ""))
        hours, minutes, rest = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
        total = 3600 * hours + 60 * minutes + rest
    else:
        total = duration if isinstance(duration, int) and not isinstance(duration, bool) else 0
    if total <= 0:
        raise ValueError(DURATION)
    return total
