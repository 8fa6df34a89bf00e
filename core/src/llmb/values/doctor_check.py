"""One thing that `llmb doctor` looked at."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class DoctorCheck:
    """What was looked at, whether it is as runs need it, what was found, and what to do where it is not.

    ``ok`` is null where that depends on what is run.
    """

    name: str
    ok: bool | None
    detail: str = ""
    remedy: str = ""
