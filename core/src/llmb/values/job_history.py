"""History of a job: its attempts, as a scheduler or the job itself recorded them."""

import attrs

from llmb.values.types.check_types import typed_fields
from llmb.values.types.numbers import NonNegativeInt


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Attempt:
    """One start of a job. ``start`` and ``end`` are in seconds since 1970. Unknown values are None or empty.

    ``cause`` is why the attempt ended: a word of `Cause`, ``requeued``, or ``cancelled by USER``. ``followed_by``
    is the job that started on the nodes of a preempted attempt, such as ``job 7 of alice (urgent) on node1``.
    ``suspended_s`` is the time between start and end for which the scheduler suspended the job.
    """

    attempt: NonNegativeInt
    start: float | None = None
    end: float | None = None
    nodes: tuple[str, ...] = ()
    cause: str = ""
    followed_by: str = ""
    suspended_s: float | None = None


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class JobHistory:
    """Attempts and canceller of a job that is over, as far as its scheduler knows them.

    ``cancelled_by`` is the user who cancelled the job. ``note`` explains to users why the history is incomplete.
    ``pending`` is True if the scheduler will soon know more: core then queries it again, for 10 s after the job's end.
    """

    attempts: tuple[Attempt, ...] = ()
    cancelled_by: str = ""
    note: str = ""
    pending: bool = False
