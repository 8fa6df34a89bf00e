"""Where a framework's logs lie when nobody says so, and which files of a directory are its logs."""

from __future__ import annotations

import re
from typing import Any

import attrs
from attrs.validators import optional

from llmb.values.typed import typed_fields


def _has_group(_files: object, field: attrs.Attribute[Any], pattern: str) -> None:
    if re.compile(pattern).groups == 0:
        raise ValueError(f"LogFiles.{field.name} is {pattern!r}, without a group")


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class LogFiles:
    """What a framework knows of the files that its own launcher leaves behind.

    ``directory`` is the folder, here, that is looked through where no log is named; null where there is no such
    habit. Patterns are of file names, as a shell has them: a file of ``training`` is a log also without a single step
    (its run broke early); one of ``other`` is none, whatever it holds. ``experiment`` is a regular expression, whose
    first group is the name by which people know a log; where it does not match, the file's name without its ending is.
    """

    directory: str | None = None
    training: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    experiment: str | None = attrs.field(default=None, validator=optional(_has_group))
