"""Errors of a target, with the commands that resume or cancel the runs there."""

import time
from collections.abc import Iterable, Iterator, Sequence

import attrs

from llmb.records.record import RunRecord
from llmb.state_machine.events import Event, TargetBack, TargetLost
from llmb.values.errors import LlmbError, TargetError
from llmb.values.texts.error_text import NAMED_RUNS, count_others

REPEAT_REPORT_S = 30.0
"""How often a target that does not respond is reported again."""


@attrs.define
class ConnectionReporter:
    """Reports that a target does not respond, again now and then, and that it responds again."""

    _target: str
    _reported_s: float | None = None

    def lost(self, error: TargetError) -> Iterator[Event]:
        """Yield an event if the user does not know yet, or was informed long ago."""
        now = time.monotonic()
        if self._reported_s is None or now - self._reported_s > REPEAT_REPORT_S:
            self._reported_s = now
            yield TargetLost(target=self._target, reason=str(error))

    def restored(self) -> Iterator[Event]:
        """Yield an event if the target did not respond before."""
        if self._reported_s is not None:
            self._reported_s = None
            yield TargetBack(target=self._target)


def with_recovery_hint(error: LlmbError, left: Iterable[RunRecord]) -> LlmbError:
    """Return the error with the commands that resume or cancel the runs in ``left``."""
    cancelled = {record.run_id: record.is_cancel_requested() for record in left}
    *others, last = error.faults
    hints = "; ".join([last.message, *_hints(cancelled)])
    return type(error)(*others, attrs.evolve(last, message=hints))


def _hints(cancelled: dict[str, bool]) -> Iterator[str]:
    if others := [run_id for run_id in cancelled if not cancelled[run_id]]:
        ids, more = first_ids(others)
        yield f"fix this, then resume with `llmb attach {ids}` or stop with `llmb cancel {ids}`{more}"
    if requested := [run_id for run_id in cancelled if cancelled[run_id]]:
        ids, more = first_ids(requested)
        yield f"nothing is cancelled yet: fix this, then repeat `llmb cancel {ids}`{more}"
        yield "the request is recorded, so `llmb attach` cancels too"


def first_ids(run_ids: Sequence[str]) -> tuple[str, str]:
    """Return the first ids, as words of a command, and the number of the other runs. `llmb attach` resumes all."""
    others = count_others(run_ids, NAMED_RUNS)
    return " ".join(run_ids[:NAMED_RUNS]), f" ({others})" if others else ""
