"""How a run ended whose logs somebody else made: whether it broke, and why."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from llmb.engine.outcome import IN_ITS_OWN_WORDS, REMEDIES
from llmb.hookspecs import FrameworkHooks
from llmb.logs.diagnose import FoundCause, find_cause, last_exception
from llmb.logs.series import StepSeries
from llmb.logs.status import LogStatus, log_status
from llmb.plugins.pool import PluginPool
from llmb.values.errors import PluginError, PluginWarning
from llmb.values.failure import Failure, Signature
from llmb.values.steps import LogParser, Notice, NoticeKind, Step

END = 1 << 20
"""Bytes at the end of a log in which a scheduler's words are looked for, and a failure that no steps tell of."""

STEPS_OF_GRACE = 10
"""New steps after a text that are no sign of another run: a scheduler gives processes half a minute to end."""

SUCCEEDED = re.compile(rb'"key": ?"run_stop"[^\n]*"status": ?"success"')
"""What a training says that was whole, as MLPerf's rules for training logs want it (mlcommons/logging, run_stop)."""

CAUSES: Mapping[NoticeKind, str] = {
    "time limit": "the job's time limit came",
    "preempted": "the scheduler took the job's nodes for another one",
    "node failure": "a node of the job failed",
    "out of memory": "the host is out of memory",
    "cancelled": "the job was cancelled",
}
"""What schedulers write into a job's log, and the cause that it tells."""


def how_it_ended(
    paths: Sequence[Path],
    framework: FrameworkHooks[Any],
    pool: PluginPool,
    series: StepSeries,
    steps_asked: int | None = None,
) -> tuple[LogStatus, Failure | None]:
    """The status as the steps and the end of the logs tell it, and why the run broke, if it did.

    Where all steps are there, or the loss was NaN, no text says otherwise; where nobody says how many there are to be,
    a failure at the end says that they were not all done.
    """
    status = log_status(series, steps_asked)
    whole = steps_asked is not None or series.total_steps is not None or series.says("finished")
    if status == "nan" or (status == "complete" and whole):
        return status, None
    known = [*pool.signatures(), *(each for path in paths for each in _told_by_schedulers(path, framework, pool))]
    found = find_cause(paths, known, END if status == "complete" else None) or last_exception(paths)
    if found is None or (status == "complete" and _went_on(found, framework)):
        return status, None
    return ("incomplete" if status == "complete" else status), found.failure


def _went_on(found: FoundCause, framework: FrameworkHooks[Any]) -> bool:
    end = _end_of(found.path)
    place = max(0, found.offset - (found.path.stat().st_size - len(end)))
    return _resumed(end[:place], end[place:], framework)


def _told_by_schedulers(path: Path, framework: FrameworkHooks[Any], pool: PluginPool) -> Iterator[Signature]:
    """What an installed scheduler wrote at the end of a log, if no run went on after it, as texts to be found there.

    They are secondary: a process may have failed before, and the others have waited until their scheduler's word. What
    comes after a training that succeeded is no failure of it: processes that hang at their exit wait for it, too.
    """
    end = _end_of(path)
    for notice in _notices(end, pool) if not SUCCEEDED.search(end) else ():
        before, text, after = end.partition(notice.text.encode())
        if notice.kind in CAUSES and text and not _resumed(before, after, framework):
            remedy = REMEDIES.get(IN_ITS_OWN_WORDS[notice.kind], "run it again")
            yield Signature(needle=notice.text, cause=CAUSES[notice.kind], remedy=remedy, primary=False)


def _notices(end: bytes, pool: PluginPool) -> Iterator[Notice]:
    for parser in pool.message_parsers():
        try:
            yield from (each for each in _items(parser, end) if isinstance(each, Notice))
        except PluginError as error:  # nobody named that scheduler
            warnings.warn(PluginWarning(f"left out: {error}"), stacklevel=2)


def _resumed(before: bytes, after: bytes, framework: FrameworkHooks[Any]) -> bool:
    """Whether so many steps follow, and were not there before, that the run went on or was begun again."""
    new = _numbers(after, framework) - _numbers(before, framework)
    return len(new) > STEPS_OF_GRACE


def _numbers(part: bytes, framework: FrameworkHooks[Any]) -> set[int]:
    return {each.step for each in _items(framework.parse_log(run=None), part) if isinstance(each, Step)}


def _items(parser: LogParser, data: bytes) -> list[Step | Notice]:
    return [*parser.feed(data), *parser.close()]


def _end_of(path: Path) -> bytes:
    if not path.is_file():  # what was piped is gone
        return b""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - END))
        return file.read(END)
