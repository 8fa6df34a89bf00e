"""Parser of torchtitan's step lines, of every version since April 2024."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from llmb import LineParser, Notice, Step

_MESH, _TOTAL, _END = b"device mesh with parallelism: ", b"total steps ", b"Training completed"
_LAST_FIELD = b"mfu: "  # of a step line; lines of a validation do not have it

_FIELD = re.compile(rb"\b(\w+): +(-?(?:\d[\d,]*(?:\.\d+)?|nan|inf))(?:GiB|%|s\b)?")
_TOTAL_STEPS = re.compile(rb"total steps (\d{1,15})\b")
_BATCH = re.compile(
    rb"local batch size (\d{1,9}), .*gradient accumulation steps (\d{1,9}), sequence length (\d{1,9})\b"
)
_SHARING_GPUS = re.compile(rb"\bpp=(\d{1,9}), .*\bcp=(\d{1,9}), tp=(\d{1,9})\b")
_MAX_STEPS = 10**15  # a longer number is garbled
_NO_LOSS = -1.0  # printed by the ranks of all pipeline stages except the last one

_NAMES = {"tps": "tokens_per_s_per_gpu", "wps": "tokens_per_s_per_gpu", "tflops": "tflops_per_gpu", "loss": "loss"}
_OTHERS = {"memory": "memory_gib", "mfu": "mfu_percent"}


class TorchTitanLog(LineParser):
    """``step: 10  loss: 7.1  grad_norm: 1.2  memory: 76.80GiB(80.83%)  tps: 5,762  tflops: 300.1  mfu: 30.3%``.

    torchtitan prints the first step and then each tenth (``metrics.log_freq``), with rates since the line before.
    NVIDIA's fork prints ``iteration_time`` too, on the first line divided by ``log_freq``, although it is one step.
    ``tokens_per_step`` is the number of tokens of a global batch for one GPU, from which all other times follow. If
    the log states batch and parallelism, as that of 0.2.2, these count instead.
    """

    needles = (_LAST_FIELD, _MESH, _TOTAL, _END)
    first_step = 1

    def __init__(self, tokens_per_step: float | None = None, printed_every: int = 1) -> None:
        super().__init__()
        self.printed_every = printed_every
        self._tokens_per_step = tokens_per_step
        self._gpus_per_batch: int | None = None
        self._last: dict[tuple[str, bytes], int] = {}

    def read_line(self, line: bytes) -> Iterator[Step | Notice]:
        """Yield the step of a line, the total number of steps, or the end of the training."""
        if _MESH in line:
            sharing = _SHARING_GPUS.search(line)
            self._gpus_per_batch = math.prod(map(int, sharing.groups())) if sharing else None
        elif total := _TOTAL_STEPS.search(line):
            if self._gpus_per_batch and (batch := _BATCH.search(line)):
                self._tokens_per_step = math.prod(map(int, batch.groups())) / self._gpus_per_batch
            yield Notice(kind="total steps", value=int(total[1]))
        elif _END in line:
            yield Notice(kind="finished")
            if last := self._last.get((self.source, self.label)):  # of 95 steps, the last printed one is 90
                yield Notice(kind="total steps", value=last)
        elif _LAST_FIELD in line:
            fields = {name.decode(): _number(text) for name, text in _FIELD.findall(line)}
            number = fields.pop("step", math.nan)
            if number.is_integer() and 0 <= number < _MAX_STEPS and ("tps" in fields or "wps" in fields):
                step = self._step(int(number), fields)
                yield step
                if step.time_s is None:
                    yield Notice(kind="run unknown", text="step times")

    def read_torn_line(self, line: bytes) -> Iterator[Step | Notice]:
        """Yield the same as `read_line`, without a last value that may lack digits."""
        if _TOTAL not in line:
            yield from self.read_line(
                line[: line.rfind(_LAST_FIELD) + len(_LAST_FIELD)] if _LAST_FIELD in line else line
            )

    def _step(self, number: int, fields: dict[str, float]) -> Step:
        known = {_NAMES[name]: value for name, value in fields.items() if name in _NAMES}
        more = {_OTHERS.get(name, name): value for name, value in fields.items() if name not in _NAMES}
        rate, loss = known["tokens_per_s_per_gpu"], known.get("loss")
        printed_time = more.pop("iteration_time", None)
        self._last[self.source, self.label] = number
        return Step(
            step=number,
            time_s=printed_time if printed_time and number > 1 else self._time(rate),
            tokens_per_s_per_gpu=rate,
            loss=None if loss == _NO_LOSS else loss,
            tflops_per_gpu=known.get("tflops_per_gpu"),
            other_values=more,
            mean_of=None,  # all steps since the line before, of the same rank or of another one
        )

    def _time(self, rate: float) -> float | None:
        return self._tokens_per_step / rate if self._tokens_per_step and rate > 0 else None


def _number(text: bytes) -> float:
    return float(text.replace(b",", b""))
