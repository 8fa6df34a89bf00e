"""Failures of runs, and the signatures by which llmb recognizes them in logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from llmb.values.types.check_types import typed_fields
from llmb.values.types.words_and_addresses import NonEmptyStr

UNKNOWN = "unknown"
"""The beginning of a cause that llmb could not find."""


def _check_expression(_signature: Any, field: attrs.Attribute[str], value: str) -> None:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"invalid Signature.{field.name} {value!r}: {error}") from error


def _check_detail(signature: Any, field: attrs.Attribute[str], value: str) -> None:
    _check_expression(signature, field, value)
    if value and re.compile(value).groups == 0:
        raise ValueError(f"invalid Signature.{field.name} {value!r}; expected a regular expression with a group")


@attrs.frozen(kw_only=True, field_transformer=typed_fields, cache_hash=True)
class Signature:
    """Text in a log (``needle``) that identifies the cause of a failure.

    ``primary`` is False if the text usually follows from another failure, for example the timeout of a watchdog or the
    death of a peer. ``report`` is True if it only states that a process ended, like the last lines of a launcher: the
    cause is then unknown, unless another signature or an exception explains it. ``origin`` is who can fix the cause,
    "" if that is unknown. ``source`` is the origin of the text.

    ``detail`` is a regular expression with one group, which follows ``needle`` in the line. The text of the group
    replaces ``{}`` in the cause, or else follows the cause, with its meaning in ``meanings``, if it has one.

    ``pattern`` is a regular expression whose match begins in the line of ``needle``, for a needle that also occurs
    elsewhere. It may continue in the lines after it, and labels of ranks are left out. Its groups ``rank`` and ``host``
    name the process that failed, and its group ``detail`` replaces ``detail``. A group ``rank`` may be a list such as
    ``0-3,7``. A scheduler's group is ``task`` instead: its number is a rank unless the task is a launcher of ranks.

    ``yields_to`` are causes that explain this one, wherever the logs contain them, such as a full disk that left a
    damaged file. A secondary cause explains it only if its text is earlier. ``survivable`` is True if programs often
    continue after the text. If the process did, what then ended it is the cause. After a secondary text, any other
    signature or exception is.
    """

    needle: NonEmptyStr
    cause: NonEmptyStr
    remedy: str = ""
    primary: bool = True
    report: bool = False
    origin: Literal["infrastructure", "user", ""] = ""
    source: str = ""
    detail: str = attrs.field(default="", validator=_check_detail)
    meanings: Mapping[str, str] = attrs.field(factory=dict)
    pattern: str = attrs.field(default="", validator=_check_expression)
    yields_to: tuple[NonEmptyStr, ...] = ()
    survivable: bool = False

    def cause_in(self, text: str) -> str:
        """Return the cause, with the detail that a text from ``needle`` on contains."""
        match = re.search(self.detail, text) if self.detail else None
        return self.cause_with(match[1]) if match and match[1] else self.cause.replace("{}", "...")

    def cause_with(self, detail: str) -> str:
        """Return the cause with this detail and its meaning."""
        meaning = self.meanings.get(detail)
        if "{}" in self.cause:
            return self.cause.replace("{}", detail) + (f" ({meaning})" if meaning else "")
        return f"{self.cause} ({detail}: {meaning})" if meaning else f"{self.cause} ({detail})"


@attrs.frozen(kw_only=True)
class Failure:
    """Cause of a failed run, and who can fix it (``origin``, None if that is unknown).

    ``evidence`` is a line of the log, and ``line`` the number of this line, from 1. ``rank`` and ``host`` are those of
    the process that failed first, None if the logs do not name them.
    """

    cause: str
    origin: Literal["infrastructure", "user"] | None = None
    evidence: str = ""
    line: int | None = None
    rank: int | None = None
    host: str | None = None
    remedy: str = ""
