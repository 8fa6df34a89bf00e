"""Step lines that DeepSpeed's pipeline engine prints on rank 0, beside Megatron's lines on the last rank.

Some versions print further losses before the time, which is the mean since the line before (``steps_per_print``)::

    steps: 20 loss: 1.1134 iter time (s): 10.817 samples/sec: 0.370

Source: PipelineEngine.train_batch in deepspeed/runtime/pipe/engine.py (deepspeedai/DeepSpeed).
"""

import re

from llmb import Step

DEEPSPEED = b" iter time (s): "

_LINE = re.compile(
    rb"steps: (\d{1,15}) loss: (-?\d{1,15}\.\d{4}|nan|inf) (?:[\w ]{1,40}: \S{1,40} )*?"
    rb"iter time \(s\): (\d{1,12}\.\d{3}) samples/sec: (\d{1,12}\.\d{3})"
)


class DeepSpeedLines:
    """Steps of the last run in a log, kept until its end, because they do not count if Megatron's lines follow."""

    def __init__(self) -> None:
        self._steps: dict[int, Step] = {}

    def read(self, line: bytes) -> None:
        """Keep the steps of a line. A lower number begins another run."""
        for number, loss, time_s, rate in _LINE.findall(line):
            step = int(number)
            if self._steps and step < next(reversed(self._steps)):
                self._steps.clear()
            self._steps[step] = Step(
                step=step,
                time_s=float(time_s),
                loss=float(loss),
                other_values={"samples/sec": float(rate)},
                mean_of=None,
            )

    def close(self) -> list[Step]:
        """Return the kept steps."""
        return [*self._steps.values()]
