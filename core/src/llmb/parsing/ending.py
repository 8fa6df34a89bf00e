"""How a run ended whose logs somebody else made: whether it broke, and why."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from llmb.analysis.run_state import IN_ITS_OWN_WORDS, REMEDIES
from llmb.hookspecs import FrameworkHooks
from llmb.logs.diagnose import diagnose, last_exception
from llmb.logs.last_steps import find_last_steps
from llmb.logs.series import StepSeries
from llmb.logs.status import LogStatus, log_status
from llmb.plugins.registry import PluginRegistry
from llmb.values.errors import PluginError, PluginWarning
from llmb.values.failure import Failure, Signature
from llmb.values.steps import LogParser, Notice, NoticeKind, Step

END = 1 << 20
"""Bytes at the end of a log in which a scheduler's words are looked for, and a failure that no steps tell of."""

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


def classify_log_end(
    paths: Sequence[Path],
    framework: FrameworkHooks[Any],
    registry: PluginRegistry,
    series: StepSeries,
    steps_asked: int | None = None,
) -> tuple[LogStatus, Failure | None]:
    """The status as the steps and the end of the logs tell it, and why the run broke, if it did.

    Where all steps are there, or the loss was NaN, no text says otherwise; where nobody says how many there are to be,
    a failure at the end says that they were not all done.
    """
    status = log_status(series, steps_asked)
    whole = steps_asked is not None or series.total_steps is not None or series.has_notice("finished")
    if status == "nan" or (status == "complete" and whole):
        return status, None
    known = [*registry.signatures(), *(each for path in paths for each in _told_by_schedulers(path, registry))]
    starts = {path: max(0, _size(path) - END) if status == "complete" else 0 for path in paths}
    found = _cause(paths, known, starts)
    if found and (later := _outlived(paths, framework, starts)) != starts:
        found = _cause(paths, known, later)
    if found is None:
        return status, None
    return ("incomplete" if status == "complete" else status), found


def _cause(paths: Sequence[Path], known: Sequence[Signature], starts: Mapping[Path, int]) -> Failure | None:
    return diagnose(paths, known, starts) or last_exception(paths, starts)


def _outlived(paths: Sequence[Path], framework: FrameworkHooks[Any], starts: Mapping[Path, int]) -> dict[Path, int]:
    """From where on a text in a log counts, at ``starts`` or later: what stands before it, a run that went on outlived.

    A run went on where more than a few new steps follow, or its first one does, or where it was begun again.
    """
    parse_log = partial(framework.parse_log, run=None)
    return {path: max(starts[path], find_last_steps(path, parse_log)) for path in paths}


def _told_by_schedulers(path: Path, registry: PluginRegistry) -> Iterator[Signature]:
    """What an installed scheduler wrote at the end of a log, as texts to be found there.

    They are secondary: a process may have failed before, and the others have waited until their scheduler's word. What
    comes after a training that succeeded is no failure of it: processes that hang at their exit wait for it, too.
    """
    end = _end_of(path)
    for notice in _notices(end, registry) if not SUCCEEDED.search(end) else ():
        if notice.kind in CAUSES and notice.text:
            remedy = REMEDIES.get(IN_ITS_OWN_WORDS[notice.kind], "run it again")
            yield Signature(needle=notice.text, cause=CAUSES[notice.kind], remedy=remedy, primary=False)


def _notices(end: bytes, registry: PluginRegistry) -> Iterator[Notice]:
    for parser in registry.message_parsers():
        try:
            yield from (each for each in _items(parser, end) if isinstance(each, Notice))
        except PluginError as error:  # nobody named that scheduler
            warnings.warn(PluginWarning(f"left out: {error}"), stacklevel=2)


def _items(parser: LogParser, data: bytes) -> list[Step | Notice]:
    return [*parser.feed(data), *parser.close()]


def _end_of(path: Path) -> bytes:
    if not path.is_file():  # what was piped is gone
        return b""
    with path.open("rb") as file:
        file.seek(max(0, _size(path) - END))
        return file.read(END)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
