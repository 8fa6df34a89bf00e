"""Ending of a run without a record, from its logs: the status, and the cause of a failure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from llmb.logs.attempt_folders import earlier_attempts
from llmb.logs.failures.choose_cause import diagnose, last_exception
from llmb.logs.failures.scheduler_endings import signatures_of_endings
from llmb.logs.failures.steps_after_error import LastSteps, NewParser
from llmb.logs.read_blocks import end_of
from llmb.logs.steps.step_series import StepSeries
from llmb.plugins.registry import PluginRegistry, warn_left_out
from llmb.values.causes import CAUSES
from llmb.values.errors import PluginError
from llmb.values.failure import Failure, Signature
from llmb.values.steps import Notice, Step

LogStatus = Literal["complete", "incomplete", "no_data", "nan"]
"""``status`` of a log in the output of ``llmb parse``."""

END_BYTES = 4 << 20
"""Bytes at the end of a log that are searched for messages of schedulers, and for failures after the last step."""

SUCCEEDED = re.compile(rb'"key": ?"run_stop"[^\n]*"status": ?"success"')
"""Message of a training that succeeded, required by MLPerf's rules for training logs (mlcommons/logging, run_stop)."""

BEGAN = re.compile(rb'"key": ?"(?:init_start|run_start)"')
"""Messages at the beginning of a training, from the same rules."""


def log_status(series: StepSeries, steps_requested: int | None = None) -> LogStatus:
    """Return whether a log contains all steps of its run: ``steps_requested``, else the number that the log announces.

    ``no_data`` means that there is no step, and ``nan`` that a loss was NaN at any step (`llmb.logs.steps.nan_steps`).
    ``complete`` means that all steps are there, even if a failure follows them. If the number of steps is unknown, a
    log is ``complete`` unless it reports a failure without reporting that the run finished. A log without the end of
    the training is incomplete if the framework prints the end.
    """
    if not series.steps:
        return "no_data"
    if series.nan:
        return "nan"
    if series.missing_end:
        return "incomplete"
    total = steps_requested if steps_requested is not None else series.total_steps
    if total is not None:
        return "complete" if series.count >= total else "incomplete"
    failed = series.has_notice(*CAUSES)
    return "incomplete" if failed and not series.has_notice("finished") else "complete"


def classify_log_end(
    name: str,
    registry: PluginRegistry,
    series: StepSeries,
    last_steps: Mapping[Path, LastSteps],
    steps_requested: int | None,
) -> tuple[LogStatus, Failure | None]:
    """Return the status of a run according to its steps and the ends of its logs, and its failure, if any.

    If all steps are there, the loss was NaN, or the training reports its success, no message changes that, because
    processes may fail or hang when they exit. If the number of steps is unknown, a failure at the end of a log shows
    that not all were done, but a warning does not. Messages before the last steps do not count, because the run
    continued. Neither do the logs of an attempt after which a launcher started the processes again.
    """
    status = log_status(series, steps_requested)
    total_known = steps_requested is not None or series.total_steps is not None or series.has_notice("finished")
    if status == "nan" or (status == "complete" and total_known):
        return status, None
    if any(map(_succeeded, last_steps)):
        return status, None
    earlier = earlier_attempts(last_steps)
    last_steps = {path: last for path, last in last_steps.items() if path not in earlier}
    new_parser = partial(registry.framework(name).parse_log, run=None)
    starts = {path: last.find_begin(path, new_parser) for path, last in last_steps.items()}
    if status == "complete":
        starts = {path: max(start, _size(path) - END_BYTES) for path, start in starts.items()}
    known = registry.signatures(name)
    endings = [each for path in starts for each in _scheduler_signatures(path, registry)]
    failure = diagnose(starts, known, starts, endings=endings, warnings=status != "complete") or _find_exception(
        starts, last_steps, new_parser, [*known, *endings], ended=status != "incomplete"
    )
    return ("incomplete" if failure and status == "complete" else status), failure


def _succeeded(path: Path) -> bool:
    """Check whether the last training in a log reports its success."""
    end = end_of(path, END_BYTES)
    began = max((match.end() for match in BEGAN.finditer(end)), default=0)
    return SUCCEEDED.search(end, began) is not None


def _find_exception(
    starts: Mapping[Path, int],
    last_steps: Mapping[Path, LastSteps],
    new_parser: NewParser,
    known: Sequence[Signature],
    *,
    ended: bool,
) -> Failure | None:
    """Return the exception that ended a rank. The other ranks finish at most their present step.

    Without ``ended``, ordinary lines may follow the exception: logs of several ranks without labels have them.
    """
    if last_exception(starts, known, starts, ended=ended) is None:  # usual, and faster than finding the last step
        return None
    begins = {path: last.find_begin(path, new_parser, 1) for path, last in last_steps.items()}
    starts = {path: max(start, begins[path]) for path, start in starts.items()}
    return last_exception(starts, known, starts, ended=ended)


def _scheduler_signatures(path: Path, registry: PluginRegistry) -> Iterator[Signature]:
    """Yield the messages of installed schedulers at the end of a log, as signatures."""
    end, found = end_of(path, END_BYTES), list[Step | Notice]()
    for parser in registry.message_parsers():
        try:
            found += [*parser.feed(end), *parser.close()]
        except PluginError as error:  # the user did not name this scheduler
            warn_left_out(error)
    yield from signatures_of_endings(found)


def _size(path: Path) -> int:
    return path.stat().st_size if os.path.isfile(path) else 0
