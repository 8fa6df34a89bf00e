"""Why a run broke: what is known by its text, and what was found."""

from __future__ import annotations

import attrs

from llmb.values.scalars import NonEmptyStr
from llmb.values.typed import typed_fields


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Signature:
    """A cause of failure that is known by a text in the log.

    ``primary`` tells a cause from what usually follows from another one (a watchdog's timeout, a peer that died);
    ``source`` says where the text was seen.
    """

    needle: NonEmptyStr
    cause: NonEmptyStr
    remedy: str
    primary: bool = True
    source: str = ""


@attrs.frozen(kw_only=True)
class Failure:
    """Why a run broke. ``evidence`` is the log's own line, ``line`` its number there (from 1)."""

    cause: str
    evidence: str = ""
    line: int | None = None
    remedy: str = ""
