"""Times in log lines, which order the errors of logs that several processes wrote."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Sequence
from pathlib import Path
from typing import Final

NEARBY_BYTES: Final = 16 << 10
"""Bytes before and after a line that are searched for a time."""

DatedTimestamp = tuple[int, int, int, int, int, float]

MONTHS: Final = 12
SOME_YEAR: Final = 2001
"""A year for times that have none."""

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
        file.seek(max(0, offset - NEARBY_BYTES))
        before, after = file.read(min(offset, NEARBY_BYTES)), file.read(NEARBY_BYTES)
    line, _, after = after.partition(b"\n")
    times = [*_TIME.finditer(before + line)]
    match = times[-1] if times else _TIME.search(after)
    return _read_time(match) if match else None


def time_in(text: bytes) -> Timestamp | None:
    """Return the first time in a text, or None."""
    match = _TIME.search(text)
    return _read_time(match) if match else None


def seconds_between(line: bytes, later: bytes) -> float | None:
    """Return the seconds from the first time in a line to that in another, or None if one has no possible time."""
    times = [time for each in (line, later) if (time := time_in(each))]
    if len(times) < 2 or not all(1 <= month <= MONTHS for _, month, *_ in times):
        return None
    begin, end = (timegm((*date, hour, minute, 0)) + second for *date, hour, minute, second in comparable(times))
    return end - begin


def _read_time(match: re.Match[bytes]) -> Timestamp:
    year = int(match["year"]) if match["year"] else None
    month, day = int(match["m"] or match["month"]), int(match["d"] or match["day"])
    return year, month, day, int(match["hour"]), int(match["minute"]), float(match["second"].replace(b",", b"."))


def comparable(times: Sequence[Timestamp]) -> Sequence[DatedTimestamp]:
    """Return the times with a year, which orders them. The years of a log count only if all times have one.

    Without years, times in January are those of the year after times in December, since they are of one run.
    """
    months = [month for _, month, *_ in times]
    over_new_year = max(months) - min(months) > MONTHS / 2
    all_dated = all(year for year, *_ in times)
    dated = list[DatedTimestamp]()
    for year, month, day, hour, minute, second in times:
        some_year = SOME_YEAR + 1 if over_new_year and month <= MONTHS / 2 else SOME_YEAR
        dated.append((year if year and all_dated else some_year, month, day, hour, minute, second))
    return dated
