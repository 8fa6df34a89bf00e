"""A check of ``llmb doctor``."""

import attrs

from llmb.values.typed import typed_fields


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class DoctorCheck:
    """A check of ``llmb doctor``: its name and result, the detail, and how to fix what is missing.

    ``ok`` is None if the result depends on the run.
    """

    name: str
    ok: bool | None
    detail: str = ""
    remedy: str = ""
