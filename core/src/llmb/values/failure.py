"""Failures of runs, and the signatures by which llmb recognizes them in logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import attrs

from llmb.values.scalars import NonEmptyStr
from llmb.values.typed import typed_fields


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Signature:
    """Text in a log (``needle``) that identifies the cause of a failure.

    ``primary`` is False if the text usually follows from another failure, for example the timeout of a watchdog or the
    death of a peer. ``origin`` is who can fix the cause, if that is known. ``source`` is the origin of the text.

    ``detail`` is a regular expression with one group, which follows ``needle`` in the line: the cause then contains the
    text of the group, with its meaning in ``meanings``, if it has one.
    """

    needle: NonEmptyStr
    cause: NonEmptyStr
    remedy: str
    primary: bool = True
    origin: Literal["infrastructure", "user", ""] = ""
    source: str = ""
    detail: str = ""
    meanings: Mapping[str, str] = attrs.field(factory=dict)

    def cause_in(self, text: str) -> str:
        """Return the cause, with the detail that a text from ``needle`` on contains."""
        match = re.search(self.detail, text) if self.detail else None
        if not match:
            return self.cause
        meaning = self.meanings.get(match[1])
        return f"{self.cause} ({match[1]}: {meaning})" if meaning else f"{self.cause} ({match[1]})"


@attrs.frozen(kw_only=True)
class Failure:
    """Cause of a failed run. ``evidence`` is a line of the log, and ``line`` the number of this line, from 1."""

    cause: str
    evidence: str = ""
    line: int | None = None
    remedy: str = ""
