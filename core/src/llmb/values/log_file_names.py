"""Directory and file names of a framework's logs."""

from __future__ import annotations

import re
from typing import Any

import attrs
from attrs.validators import optional

from llmb.values.types.check_types import typed_fields


def _has_group(_files: object, field: attrs.Attribute[Any], pattern: str) -> None:
    if re.compile(pattern).groups == 0:
        raise ValueError(f"invalid LogFiles.{field.name} {pattern!r}; expected a regular expression with a group")


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class LogFiles:
    """Names of the files that a framework's own launcher writes.

    ``directory`` is the folder in the current directory that ``llmb parse`` searches without a LOG, or None if the
    launcher has no default. ``training`` and ``other`` are shell patterns of file names. A file of ``training`` is a
    log even without a step, because its run may have failed early. A file of ``other`` is never a log. ``experiment``
    is a regular expression whose first group is the name of the experiment. If it does not match, the name is the file
    name without its ending.
    """

    directory: str | None = None
    training: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    experiment: str | None = attrs.field(default=None, validator=optional(_has_group))
