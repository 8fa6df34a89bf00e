"""Parser of MaxText's step lines, of every version.

MaxText prints its configuration, then a line per step. Names and order of the fields depend on the version::

    Config param steps: 30
    completed step: 0, seconds: 5.741, TFLOP/s/device: 133.194, Tokens/s/device: 8561.582, loss: 10.874, ...

With hide_profiler_step_metric, the steps at which its profiler starts or stops have no time::

    completed profiler activation/deactivation step: 5, total_weights: 131072, loss: 10.871, ...

A training that stops early prints a reason::

    Training stopped: Target loss self.config.target_eval_loss=5.5 is achieved.
    Aborting training due to NaN loss.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from llmb import LineParser, Notice, Step

_STEP = b"completed step: "
_OF_PROFILER = b"profiler activation/deactivation "
_ABORT = b"Aborting training due to "
_TOTAL = b"Config param steps: "
_TARGET = b"Training stopped: Target loss "

_NEEDLES = (_STEP, _OF_PROFILER, _ABORT, _TOTAL, _TARGET)
_WRAPPED_NEEDLES = (_STEP, _OF_PROFILER, _ABORT, b"\n", b": ")
"""Texts to search for after a step line that may be wrapped: any next line, with or without an end."""

_WRAPPED_ENDS = (b",", b":")
_CHECKED_STEPS = 50  # without a continuation, until lines are no longer expected to be wrapped; the search takes long

_MAX_DIGITS = 18  # of a step number; a longer one is garbled

_NAMES = {
    b"seconds": "time_s",
    b"loss": "loss",
    b"TFLOP/s/device": "tflops_per_gpu",
    b"TFLOP/s": "tflops_per_gpu",  # until 2023, also per device
    b"Tokens/s/device": "tokens_per_s_per_gpu",
}

_TOTAL_STEPS = re.compile(rb"Config param steps: (\d{1,18})\s*$")
_FIELD = re.compile(rb"[\w/ ().-]+(?:: ?(?:-?[\d.]*(?:e[+-]?\d*)?|nan|inf))?")
"""A field of a step line, or its beginning."""

_WRAPPED_AT_BLANK = re.compile(rb"(?<=[,:])\s*\n\s*")

_COMPLETE = re.compile(rb"-?(?:\d++\.\d{3,}+(?![.,]\d)|(?:nan|inf)\b)")
"""A number that is complete whatever follows, because MaxText prints three decimals."""


class MaxTextLog(LineParser):
    """Parser of one line per step.

    Fields without an attribute in a Step become its ``other_values``. A step line without any field of a Step is
    skipped, because it was cut or shortened by hand. Copies of step lines may be wrapped at any column after
    ``completed step: ``. Then the step is returned again with the fields of each further line.
    """

    needles: Sequence[bytes] = _NEEDLES
    first_step = 0

    def __init__(self) -> None:
        super().__init__()
        self._wrapped_label: bytes | None = None  # the rank label of a step line that may continue on the next line
        self._lines_to_check = defaultdict[str, int](lambda: _CHECKED_STEPS)  # of each source

    def read_line(self, line: bytes) -> list[Step | Notice]:
        """Return the steps of a line (several if ranks joined their lines), or the reason why training stopped."""
        if total := _TOTAL_STEPS.search(line):
            return [Notice(kind="total steps", text=f"{int(total[1])} steps", value=int(total[1]))]
        if not line.strip():
            return []  # the end of the line before, after which any line may continue it
        line = line.replace(_OF_PROFILER, b"")
        if _STEP in line:
            self._lines_to_check[self.source] -= 1
            self._wrapped_label = self.label
        elif self._wrapped_label is not None and self.label.rstrip() in (self._wrapped_label.rstrip(), b""):
            line = self._unwrap(line, self._wrapped_label)
            if _STEP in line:
                self.label = self._wrapped_label  # a terminal prints it only once
                self._lines_to_check[self.source] = _CHECKED_STEPS
        may_continue = self._lines_to_check[self.source] > 0 or line.rstrip().endswith(_WRAPPED_ENDS)
        self.needles = _WRAPPED_NEEDLES if _STEP in line and may_continue else _NEEDLES
        found: list[Step | Notice] = [step for part in line.split(_STEP)[1:] if (step := _step(part))]
        if _TARGET in line:
            found.append(Notice(kind="planned end"))  # MaxText prints the last step after it
        if _ABORT in line:
            found.append(_abort(line[line.index(_ABORT) :]))
        return found

    def _unwrap(self, line: bytes, label: bytes) -> bytes:
        """Return the step of which this line is a part, as far as it is printed, or the line if it is no such part."""
        before = self.text_before().replace(_OF_PROFILER, b"")
        begin = before.rfind(_STEP)
        printed, rest = before[begin:].replace(b"\n" + label, b"\n"), line.removeprefix(label)
        is_complete = printed.rstrip()[-4:-3] == b"."  # MaxText prints three decimals
        if begin < 0 or (is_complete and not rest.startswith(b",")):
            return line
        text = _WRAPPED_AT_BLANK.sub(b" ", printed + rest).replace(b"\n", b"")
        _, *fields = text.rstrip(b", ").split(b", ")
        return text if all(map(_FIELD.fullmatch, fields)) else line

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
        name, _, text = field.strip().partition(b": ")
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
