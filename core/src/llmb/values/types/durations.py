"""Durations as users write them, such as "1h30m"."""

import re
from typing import Annotated, Any

from llmb.values.types.value_type import InvalidValueError, ValueType, is_integer

LONGEST_S = 365 * 24 * 3600
"""The longest duration, a year: no scheduler allows longer jobs, and shells and dates overflow far above."""

DURATION = 'a duration such as "1h", "30m", "1h30m" or "90s", or a number of seconds'
"""The values of a duration, for messages."""

_DURATION = re.compile(r"(?:(\d{1,99})h)?(?:(\d{1,99})m)?(?:(\d{1,99})s)?")  # Python reads no number of 5,000 digits


def _duration(value: Any) -> int:
    """Return a duration in seconds: ``"1h"``, ``"30m"``, ``"90s"``, ``"1h30m"``, or a number of seconds."""
    total = value if is_integer(value) else 0
    if isinstance(value, str) and (found := _DURATION.fullmatch(value.replace(" ", ""))):
        hours, minutes, seconds = (int(part or 0) for part in found.groups())
        total = 3600 * hours + 60 * minutes + seconds
    if total <= 0:
        raise InvalidValueError.of(value, DURATION)
    if total > LONGEST_S:
        raise InvalidValueError.of(value, "at most one year, 8760h")
    return int(total)


_DURATION_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": LONGEST_S},
        {"type": "string", "pattern": "^( *[0-9]+ *[hms])+ *$"},
    ]
}

Duration = Annotated[int, ValueType(DURATION, _duration, schema=_DURATION_SCHEMA)]
"""Seconds, of at most LONGEST_S; in TOML also a string such as "1h30m"."""
