"""How a run ended whose logs somebody else made: whether it broke, and why."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from llmb.analysis.run_state import IN_ITS_OWN_WORDS, REMEDIES
from llmb.hookspecs import FrameworkHooks
from llmb.logs.diagnose import diagnose, last_exception
from llmb.logs.files import end_of
from llmb.logs.last_steps import LastSteps
from llmb.logs.log_status import LogStatus, log_status
from llmb.logs.step_series import StepSeries
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
    framework: FrameworkHooks[Any],
    registry: PluginRegistry,
    series: StepSeries,
    last_steps: Mapping[Path, LastSteps],
    steps_asked: int | None = None,
) -> tuple[LogStatus, Failure | None]:
    """Return the status of a run according to its steps and the ends of its logs, and why it failed, if it did.

    If all steps are there, or the loss was NaN, no message changes that. If the number of steps is unknown, a failure
    at the end of a log shows that not all were done. Messages before the last steps do not count, because the run
    continued.
    """
    status = log_status(series, steps_asked)
    total_known = steps_asked is not None or series.total_steps is not None or series.has_notice("finished")
    if status == "nan" or (status == "complete" and total_known):
        return status, None
    new_parser = partial(framework.parse_log, run=None)
    starts = {path: last.find_begin(path, new_parser) for path, last in last_steps.items()}
    if status == "complete":
        starts = {path: max(start, _size(path) - END) for path, start in starts.items()}
    known = [*registry.signatures(), *(each for path in starts for each in _told_by_schedulers(path, registry))]
    failure = diagnose(starts, known, starts) or last_exception(starts, starts)
    return ("incomplete" if failure and status == "complete" else status), failure


def _told_by_schedulers(path: Path, registry: PluginRegistry) -> Iterator[Signature]:
    """What an installed scheduler wrote at the end of a log, as texts to be found there.

    They are secondary: a process may have failed before, and the others have waited until their scheduler's word. What
    comes after a training that succeeded is no failure of it: processes that hang at their exit wait for it, too.
    """
    end = end_of(path, END)
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


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
