"""Step lines of NeMo 2 that a copy wrapped, before or after a ``|`` or at the width of a terminal.

A terminal wraps a line at any column, within a name or a number::

    Training epoch 0, iteration 28/99 | lr: 5.6e-06 | global_step: 28 | reduc
    ed_train_loss: 2.778 | train_step_timing in s: 0.189
"""

import re

FOUR_DIGITS = re.compile(rb"(?!0*\.?0)[\d.]{5}")
"""A number that is complete, because NeMo 2 prints four digits. It omits zeros at the end."""

_AT_BAR = re.compile(rb"\s*(?:\|\s*\n|\n\s*\|)\s*")
_AT_BLANK = re.compile(rb"(?<=:)\s*\n\s*|(?<=timing)\s*\n\s*(?=in s:)|(?<=timing in)\s*\n\s*(?=s:)")
_FIELD = re.compile(rb"[\w/ ().%-]+(?:: ?(?:-?\d*+(?:\.\d*+)?(?:e[+-]?\d*+)?|na?n?|in?f?)\s*)?")
"""A field of a step line, or its beginning."""


def continue_line(printed: bytes, line: bytes) -> bytes | None:
    """Return a step line and the next line as one line, or None if the next line does not continue the step line."""
    at_bar = printed.rstrip().endswith(b"|") or line.lstrip().startswith(b"|")
    _, _, last_value = printed.rstrip().rpartition(b": ")
    if not at_bar and FOUR_DIGITS.fullmatch(last_value) and not line.startswith((b"e+", b"e-")):
        return None
    joined = _join(printed, line)
    _, *fields = joined.rstrip(b" |").split(b" | ")
    return joined if all(map(_FIELD.fullmatch, fields)) else None


def _join(printed: bytes, line: bytes) -> bytes:
    return _AT_BLANK.sub(b" ", _AT_BAR.sub(b" | ", printed + line)).replace(b"\n", b"")
