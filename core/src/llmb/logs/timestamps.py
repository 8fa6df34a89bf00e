"""Times in log lines, which order the errors of logs that several processes wrote."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Sequence
from pathlib import Path
from typing import Final

NEARBY: Final = 16 << 10
"""Bytes before and after a line that are searched for a time."""

Timestamp = tuple[int | None, int, int, int, int, float]
"""Year, month, day, hour, minute and second. The year is None if the log omits it, as glog does."""

_TIME = re.compile(
    rb"""(?: # ISO 8601, or glog
           \b(?P<year>\d{4})[-/](?P<m>\d\d)[-/](?P<d>\d\d)[T_\ :]
         | \b[EWIF](?P<month>\d\d?)(?P<day>\d\d)\ )
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
    return _read_time(match) if match else None


def seconds_in(line: bytes) -> float | None:
    """Return the first time in a line in seconds, as if it were of 2001, or None if the line has no possible time."""
    match = _TIME.search(line)
    if match is None:
        return None
    _, month, day, hour, minute, second = _read_time(match)
    return timegm((2001, month, day, hour, minute, 0)) + second if 1 <= month <= 12 else None


def _read_time(match: re.Match[bytes]) -> Timestamp:
    year = int(match["year"]) if match["year"] else None
    month, day = int(match["m"] or match["month"]), int(match["d"] or match["day"])
    return year, month, day, int(match["hour"]), int(match["minute"]), float(match["second"].replace(b",", b"."))


def comparable(times: Sequence[Timestamp]) -> Sequence[tuple[float, ...]]:
    """Return the times in a form that orders them. The year counts only if all of them have one."""
    dated = [(year or 0, *rest) for year, *rest in times]
    return dated if all(time[0] for time in dated) else [(0, *rest) for _, *rest in dated]
