"""MaxText's step lines, of every version."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmb import LineParser, Notice, Step

_STEP = b"completed step: "
_ABORT = b"Aborting training due to "
_LONGEST_NUMBER = 18  # digits of a step number; more are no step but something garbled

_USUAL = re.compile(rb"completed step: (\d{1,18}), seconds: \d{1,9}\.\d{3}(?:, |$)")

_NAMES = {
    b"seconds": "time_s",
    b"loss": "loss",
    b"TFLOP/s/device": "tflops_per_gpu",
    b"TFLOP/s": "tflops_per_gpu",  # until 2023, for each device too
    b"Tokens/s/device": "tokens_per_s_per_gpu",
}

_WHOLE = re.compile(rb"-?(?:\d+\.\d{3,}|(?:nan|inf)\b)")
"""A figure that is whole whatever follows it: MaxText prints three decimals."""


class MaxTextLog(LineParser):
    """``completed step: N, seconds: S, TFLOP/s/device: X, Tokens/s/device: Y, total_weights: W, loss: L, ...``.

    Fields come and go with the version and their order does not matter; what has no field of its own in a Step goes
    to its figures. A step line without a single figure is none: it is cut, or was shortened by hand.
    """

    needles = (_STEP, _ABORT)
    first_step = 0

    def glance(self, line: bytes) -> tuple[int, bytes] | None:
        """A line with its seconds is a step; what else it says can wait."""
        match = _USUAL.search(line)
        return None if match is None or b"nan" in line else (int(match[1]), line)

    def read_step(self, text: bytes) -> Step:
        """As `read_line`."""
        step = _step(text.partition(_STEP)[2])
        assert step is not None
        return step

    def read_line(self, line: bytes) -> list[Step | Notice]:
        """The steps of a line (more than one where ranks glued theirs together), or why the training was aborted."""
        found: list[Step | Notice] = [step for part in line.split(_STEP)[1:] if (step := _step(part))]
        if _ABORT in line:
            found.append(_abort(line[line.index(_ABORT) :]))
        return found

    def read_torn_line(self, line: bytes) -> Sequence[Step | Notice]:
        """As `read_line`, without a last figure of which digits may be missing."""
        fields, _, last = line.rpartition(b", ")
        return self.read_line(line if _WHOLE.fullmatch(last.partition(b": ")[2]) or _ABORT in last else fields)


def _step(text: bytes) -> Step | None:
    """The step that begins with its number, if any figure of it is there."""
    number, *fields = text.split(b", ")
    if not number.isdigit() or len(number) > _LONGEST_NUMBER:
        return None
    known: dict[str, float] = {}
    more: dict[str, float] = {}
    for field in fields:
        name, _, figure = field.partition(b": ")
        try:
            value = float(figure)
        except ValueError:
            whole = _WHOLE.match(figure)  # something is glued to it
            if whole is None:
                continue
            value = float(whole[0])
        if name in _NAMES:
            known[_NAMES[name]] = value
        else:
            more[name.decode(errors="replace")] = value
    return Step(step=int(number), figures=more, **known) if known else None  # type: ignore[arg-type]  # floats' names


def _abort(text: bytes) -> Notice:
    words = text[:200].decode(errors="replace").strip()
    return Notice(kind="nan" if "NaN" in words else "failure", text=words)
