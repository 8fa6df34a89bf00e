"""Runs whose site does not answer as it should: why is kept with them, and what people can do is told."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from llmb.drive.active import ActiveRun
from llmb.values.errors import LlmbError, RecordError


def with_recovery_hint(error: Exception, runs: Iterable[ActiveRun]) -> Exception:
    """The same error with what can be done about these runs; a bug as it is."""
    if not isinstance(error, LlmbError):
        return error
    left = [run for run in runs if not run.ended]
    for run in left:
        if run.state == "submitting" and run.record.locked:
            with suppress(RecordError):  # the error itself is what people are told
                run.record.add_event(unanswered=str(error))
    unwanted = [run for run in left if run.record.cancel_requested]
    return type(error)("; ".join([str(error), *_ways([run for run in left if run not in unwanted], unwanted)]))


def _ways(wanted: list[ActiveRun], unwanted: list[ActiveRun]) -> Iterable[str]:
    if wanted:
        ids = _ids(wanted)
        yield f"once that is mended, `llmb attach {ids}` goes on, and `llmb cancel {ids}` ends what is there"
    if unwanted:
        ids = _ids(unwanted)
        yield f"nothing is cancelled yet: once that is mended, `llmb cancel {ids}` ends what is there"


def _ids(runs: list[ActiveRun]) -> str:
    return " ".join(run.run.id for run in runs)
