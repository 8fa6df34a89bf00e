"""torchtitan's step lines, of every version since April 2024."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from llmb import LineParser, Notice, Step

_TOTAL, _END = b"total steps ", b"Training completed"
_FIGURE = b"mfu: "  # the last one of a step line, and in no line of a validation

_FIELD = re.compile(rb"\b(\w+): +(-?(?:\d[\d,]*(?:\.\d+)?|nan|inf))(?:GiB|%)?")
_TOTAL_STEPS = re.compile(rb"total steps (\d{1,15})\b")
_MOST_STEPS = 10**15  # what has more digits is garbled

_NAMES = {"tps": "tokens_per_s_per_gpu", "wps": "tokens_per_s_per_gpu", "tflops": "tflops_per_gpu", "loss": "loss"}
_OTHERS = {"mfu": "mfu_percent", "memory": "memory_gib"}


class TorchTitanLog(LineParser):
    """``step: 10  loss: 7.1  grad_norm: 1.2  memory: 76.80GiB(80.83%)  tps: 5,762  tflops: 300.1  mfu: 30.3%``.

    The first step is printed, then each tenth (as ``metrics.log_freq`` says), with rates since the line before.
    ``tokens_per_step`` is what one GPU takes of a global batch; without it steps have no time.
    """

    needles = (_FIGURE, _TOTAL, _END)
    first_step = 1

    def __init__(self, tokens_per_step: float | None = None) -> None:
        super().__init__()
        self._tokens_per_step = tokens_per_step
        self._last: dict[tuple[str, bytes], int] = {}

    def read_line(self, line: bytes) -> Iterator[Step | Notice]:
        """One step, or how many there will be, or that there will be no more."""
        if total := _TOTAL_STEPS.search(line):
            yield Notice(kind="total steps", value=int(total[1]))
        elif _END in line:
            yield Notice(kind="finished")
            if last := self._last.get((self.source, self.label)):  # of 95 steps the ninetieth is the last to be printed
                yield Notice(kind="total steps", value=last)
        elif _FIGURE in line:
            fields = {name.decode(): _number(figure) for name, figure in _FIELD.findall(line)}
            number = fields.pop("step", math.nan)
            if number.is_integer() and 0 <= number < _MOST_STEPS and ("tps" in fields or "wps" in fields):
                yield self._step(int(number), fields)

    def read_torn_line(self, line: bytes) -> Iterator[Step | Notice]:
        """As `read_line`, without a last figure, of which digits may be missing."""
        if _TOTAL not in line:
            yield from self.read_line(line[: line.rfind(_FIGURE) + len(_FIGURE)] if _FIGURE in line else line)

    def _step(self, number: int, fields: dict[str, float]) -> Step:
        known = {_NAMES[name]: value for name, value in fields.items() if name in _NAMES}
        more = {_OTHERS.get(name, name): value for name, value in fields.items() if name not in _NAMES}
        rate, before = known["tokens_per_s_per_gpu"], self._last.get((self.source, self.label), 0)
        self._last[self.source, self.label] = number
        return Step(
            step=number,
            time_s=self._tokens_per_step / rate if self._tokens_per_step and rate > 0 else None,
            tokens_per_s_per_gpu=rate,
            loss=known.get("loss"),
            tflops_per_gpu=known.get("tflops_per_gpu"),
            figures=more,
            mean_of=number - before if number > before else 1,
        )


def _number(figure: bytes) -> float:
    return float(figure.replace(b",", b""))
