"""Times in log lines, which order the errors of logs that several processes wrote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

NEARBY: Final = 16 << 10
"""Bytes before and after a line that are searched for a time."""

Timestamp = tuple[int, int, int, int, float]
"""Month, day, hour, minute and second. Many logs omit the year."""

_TIME = re.compile(
    rb"""(?: \b\d{4}[-/](?P<m>\d\d)[-/](?P<d>\d\d)[T_\ :] | \b[EWIF](?P<month>\d\d?)(?P<day>\d\d)\ ) # ISO 8601; glog
         (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:[.,]\d+)?)""",
    re.VERBOSE,
)


def time_at(path: Path, offset: int) -> Timestamp | None:
    """Return the last time before the end of the line at ``offset``, else the first time after it, or None."""
    with path.open("rb") as file:
        file.seek(max(0, offset - NEARBY))
        before, after = file.read(min(offset, NEARBY)), file.read(NEARBY)
    line, _, after = after.partition(b"\n")
    times = [*_TIME.finditer(before + line)]
    match = times[-1] if times else _TIME.search(after)
    if match is None:
        return None
    month, day = int(match["m"] or match["month"]), int(match["d"] or match["day"])
    return month, day, int(match["hour"]), int(match["minute"]), float(match["second"].replace(b",", b"."))
