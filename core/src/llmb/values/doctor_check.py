"""A check of ``llmb doctor``."""

from __future__ import annotations

import attrs
from attrs.validators import instance_of, optional


@attrs.frozen(kw_only=True)
class DoctorCheck:
    """A check of ``llmb doctor``: its name and result, the detail, and how to fix what is missing.

    ``ok`` is None if the result depends on the run.
    """

    name: str = attrs.field(validator=instance_of(str))
    ok: bool | None = attrs.field(validator=optional(instance_of(bool)))
    detail: str = attrs.field(default="", validator=instance_of(str))
    remedy: str = attrs.field(default="", validator=instance_of(str))
