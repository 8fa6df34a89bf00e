"""Failures of runs, and the signatures by which llmb recognizes them in logs."""

from __future__ import annotations

import attrs

from llmb.values.scalars import NonEmptyStr
from llmb.values.typed import typed_fields


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Signature:
    """Text in a log (``needle``) that identifies the cause of a failure.

    ``primary`` is False if the text usually follows from another failure, for example the timeout of a watchdog or the
    death of a peer. ``source`` is the origin of the text.
    """

    needle: NonEmptyStr
    cause: NonEmptyStr
    remedy: str
    primary: bool = True
    source: str = ""


@attrs.frozen(kw_only=True)
class Failure:
    """Cause of a failed run. ``evidence`` is a line of the log, and ``line`` the number of this line, from 1."""

    cause: str
    evidence: str = ""
    line: int | None = None
    remedy: str = ""
