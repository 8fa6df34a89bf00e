"""Parser of MaxText's step lines, of every version.

MaxText prints its configuration, then a line per step. Names and order of the fields depend on the version::

    Config param steps: 30
    completed step: 0, seconds: 5.741, TFLOP/s/device: 133.194, Tokens/s/device: 8561.582, loss: 10.874, ...

A training that stops early prints a reason::

    Training stopped: Target loss self.config.target_eval_loss=5.5 is achieved.
    Aborting training due to NaN loss.
"""

import re
from collections.abc import Sequence

from llmb import LineParser, Notice, Step

_STEP = b"completed step: "
_ABORT = b"Aborting training due to "
_TOTAL = b"Config param steps: "
_TARGET = b"Training stopped: Target loss "

_WRAPPED_ENDS = (b",", b":")
_NEEDLES = (_STEP, _ABORT, _TOTAL, _TARGET)
_WRAPPED_NEEDLES = (_STEP, _ABORT, b": ", b".")
"""Texts to search for after a wrapped step line, which ends with one of ``_WRAPPED_ENDS``."""

_MAX_DIGITS = 18  # of a step number; a longer one is garbled

_NAMES = {
    b"seconds": "time_s",
    b"loss": "loss",
    b"TFLOP/s/device": "tflops_per_gpu",
    b"TFLOP/s": "tflops_per_gpu",  # until 2023, also per device
    b"Tokens/s/device": "tokens_per_s_per_gpu",
}

_TOTAL_STEPS = re.compile(rb"Config param steps: (\d{1,18})\s*$")
_WRAPPED_AT = re.compile(rb"(?<=[,:])\s*\n\s*")

_COMPLETE = re.compile(rb"-?(?:\d+\.\d{3,}|(?:nan|inf)\b)")
"""A number that is complete whatever follows, because MaxText prints three decimals."""


class MaxTextLog(LineParser):
    """Parser of one line per step.

    Fields without an attribute in a Step become its ``other_values``. A step line without any field of a Step is
    skipped, because it was cut or shortened by hand. Copies of step lines may be wrapped after a comma or a colon. Then
    the step is returned again with the fields of each further line.
    """

    needles: Sequence[bytes] = _NEEDLES
    first_step = 0

    def __init__(self) -> None:
        super().__init__()
        self._is_wrapped = False  # True if the step line before may continue on the current line

    def read_line(self, line: bytes) -> list[Step | Notice]:
        """Return the steps of a line (several if ranks joined their lines), or the reason why training stopped."""
        if total := _TOTAL_STEPS.search(line):
            return [Notice(kind="total steps", text=f"{int(total[1])} steps", value=int(total[1]))]
        if self._is_wrapped and _STEP not in line:
            line = self._unwrap(line)
        self._is_wrapped = _STEP in line and line.rstrip().endswith(_WRAPPED_ENDS)
        self.needles = _WRAPPED_NEEDLES if self._is_wrapped else _NEEDLES
        found: list[Step | Notice] = [step for part in line.split(_STEP)[1:] if (step := _step(part))]
        if _TARGET in line:
            found.append(Notice(kind="planned end"))  # MaxText prints the last step after it
        if _ABORT in line:
            found.append(_abort(line[line.index(_ABORT) :]))
        return found

    def _unwrap(self, line: bytes) -> bytes:
        """Return a step that began in a line before, as far as it is printed, or the line itself."""
        before = self.text_before()
        begin = before.rfind(_STEP)
        if begin < 0 or not before.rstrip().endswith(_WRAPPED_ENDS):
            return line
        return _WRAPPED_AT.sub(b" ", before[begin:] + line)

    def read_torn_line(self, line: bytes) -> Sequence[Step | Notice]:
        """Return the steps of a line without a line end, but not a last number that may lack digits."""
        fields, _, last = line.rpartition(b", ")
        return self.read_line(line if _COMPLETE.fullmatch(last.partition(b": ")[2]) or _ABORT in last else fields)


def _step(text: bytes) -> Step | None:
    """Return the step of a text that begins with its number, or None if the text has no field of a Step."""
    number, *fields = text.split(b", ")
    if not number.isdigit() or len(number) > _MAX_DIGITS:
        return None
    if text[-4:-3] != b"." and fields and _is_cut(fields[-1]):  # the first check is fast
        fields.pop()
    known: dict[str, float] = {}
    other_values: dict[str, float] = {}
    for field in fields:
        name, _, text = field.partition(b": ")
        try:
            value = float(text)
        except ValueError:
            complete = _COMPLETE.match(text)  # other text follows without a separator
            if complete is None:
                continue
            value = float(complete[0])
        if name in _NAMES:
            known[_NAMES[name]] = value
        else:
            other_values[name.decode(errors="replace")] = value
    return Step(step=int(number), other_values=other_values, **known) if known else None  # type: ignore[arg-type]  # names of floats


def _is_cut(field: bytes) -> bool:
    """Check whether the last field of a line lacks digits, because srun or a terminal continued it on the next line."""
    name, _, value = field.partition(b": ")
    return name in _NAMES and not _COMPLETE.match(value)


def _abort(text: bytes) -> Notice:
    words = text[:200].decode(errors="replace").strip()
    return Notice(kind="nan" if "NaN" in words else "failed", text=words)
