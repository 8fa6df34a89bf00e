"""Reports in which launchers name the processes that ended: their order, their processes, and their tracebacks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter

import attrs

from llmb.logs.failures.earliest_hit import SIDE_EFFECTS, SIMULTANEOUS_S
from llmb.logs.failures.exceptions import TailLine, find_errors, first_exception
from llmb.logs.failures.signature_search import Hit, line_at
from llmb.logs.processes import Report, task_of_line
from llmb.logs.rank_labels import split_label
from llmb.logs.read_blocks import read_part
from llmb.logs.timestamps import comparable, seconds_between, time_in

_TRACEBACK = re.compile(rb"\btraceback +: Traceback \(most recent call last\):")
_RULE = re.compile(rb"(?m)^.{0,80}?[=-]{20,}\s*$")
"""The traceback in the report of a launcher, and the line that ends the report."""


def order_reports(reports: Sequence[Hit]) -> Sequence[Hit]:
    """Return reports in the order of the times in their texts. Reports without a time follow.

    The launcher of each node prints its report only after it ended its other processes.
    """
    times = [time_in(hit.match[0].encode()) if hit.match else None for hit in reports]
    timed = [(time, hit) for time, hit in zip(times, reports, strict=True) if time]
    if not timed:
        return reports
    dated = zip(comparable([time for time, _ in timed]), [hit for _, hit in timed], strict=True)
    others = [hit for time, hit in zip(times, reports, strict=True) if not time]
    return [*(hit for _, hit in sorted(dated, key=itemgetter(0))), *others]


def read_report(hit: Hit) -> Report:
    """Return the processes that a launcher reports at a hit."""
    if "(?P<task>" in hit.signature.pattern:
        return Report([*hit.processes], about_tasks=True)
    return Report([*hit.processes], task_of_line(line_at(hit.path, hit.offset).raw))


def follows_report(hit: Hit, reports: Sequence[Hit]) -> bool:
    """Check whether a hit is below the first of ``reports`` in its log, or has a time well after that of the report."""
    if not reports:
        return False
    first = reports[0]
    if first.path == hit.path and first.offset < hit.offset:
        return True
    text = first.match[0].encode() if first.match else b""
    after_s = seconds_between(text, line_at(hit.path, hit.offset).raw)
    return after_s is not None and after_s > SIMULTANEOUS_S


def find_reported_exception(hit: Hit) -> TailLine | None:
    """Return the exception whose traceback the report at a hit contains, or None."""
    section = read_part(hit.path, hit.offset, hit.offset + SIDE_EFFECTS)
    if not _TRACEBACK.search(section):  # much faster than the next search, and a log may have many reports
        return None
    if end := _RULE.search(section):
        section = section[: end.start()]
    begin = _TRACEBACK.search(section)
    if begin is None:
        return None
    label, _ = split_label(section[section.rfind(b"\n", 0, begin.start()) + 1 :])
    error = first_exception([each for each in find_errors(section) if split_label(each.line)[0] == label])
    return attrs.evolve(error, offset=hit.offset + error.offset) if error else None
