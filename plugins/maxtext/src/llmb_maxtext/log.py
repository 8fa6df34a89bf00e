"""MaxText's step lines, of every version."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from llmb import FrozenMap, LineParser, Notice, Step

_STEP = re.compile(rb"completed step: (\d+), (.*)")
_FIELD = re.compile(rb"([A-Za-z][\w/ ]*?): (-?(?:[\d.]+(?:e[+-]?\d+)?|nan|inf))(?=[,\s]|$)", re.IGNORECASE)
_NAN_ABORT = b"Aborting training due to NaN loss"

_NAMES = {
    b"seconds": "time_s",
    b"loss": "loss",
    b"TFLOP/s/device": "tflops_per_gpu",
    b"TFLOP/s": "tflops_per_gpu",  # until 2023, for each device too
    b"Tokens/s/device": "tokens_per_s_per_gpu",
}


class MaxTextLog(LineParser):
    """``completed step: N, seconds: S, TFLOP/s/device: X, Tokens/s/device: Y, total_weights: W, loss: L, ...``.

    Fields come and go with the version and their order does not matter; what has no field of its own in a Step goes
    to its figures. A step line without a single figure is none: it is cut, or was shortened by hand.
    """

    needles = (b"completed step: ", _NAN_ABORT)

    def read_line(self, line: bytes) -> Iterator[Step | Notice]:
        """A step, and a notice where its loss is NaN."""
        if _NAN_ABORT in line:
            yield Notice(kind="nan", text=line.decode(errors="replace").strip())
            return
        match = _STEP.search(line)
        if match is None:
            return
        fields = {name: float(value) for name, value in _FIELD.findall(match[2])}
        if not fields.keys() & _NAMES.keys():
            return
        known = {_NAMES[name]: value for name, value in fields.items() if name in _NAMES}
        more = {name.decode(): value for name, value in fields.items() if name not in _NAMES}
        yield Step(step=int(match[1]), figures=FrozenMap(more), **known)  # type: ignore[arg-type]  # names of floats
        if math.isnan(known.get("loss", 0.0)):
            yield Notice(kind="nan", text=f"the loss of step {int(match[1])} is NaN")
