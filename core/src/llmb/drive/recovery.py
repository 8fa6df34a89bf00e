"""Errors of a target, with the commands that resume or cancel the runs there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from llmb.drive.record import RunRecord
from llmb.values.errors import LlmbError


def with_recovery_hint(error: LlmbError, left: Iterable[RunRecord]) -> LlmbError:
    """Return the error with the commands that resume or cancel the runs in ``left``."""
    cancelled = {record.run_id: record.cancel_requested > 0 for record in left}
    return type(error)("; ".join([str(error), *_hints(cancelled)]))


def _hints(cancelled: dict[str, bool]) -> Iterator[str]:
    if ids := " ".join(run_id for run_id in cancelled if not cancelled[run_id]):
        yield f"fix this, then resume with `llmb attach {ids}` or stop with `llmb cancel {ids}`"
    if ids := " ".join(run_id for run_id in cancelled if cancelled[run_id]):
        yield f"nothing is cancelled yet: fix this, then repeat `llmb cancel {ids}`"
