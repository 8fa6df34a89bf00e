"""Parser of NeMo's step lines: the progress bar and the DLLogger file of NeMo 1, and the lines of NeMo 2.

NeMo 1 draws a bar, with numbers of about four digits. DLLogger may print the same step in full behind the bar, or into
a file. It counts steps from 0, so this is the second step::

    Epoch 0: :  10%|█ | 2/20 [00:49<07:25, reduced_train_loss=11.20, global_step=1.000, train_step_timing in s=24.80]
    DLL 2025-06-11 01:56:01.007935 - 1 reduced_train_loss : 11.159525  grad_norm : 44.6  epoch : 0
    DLLL {"timestamp": "1.5", "step": 1, "data": {"reduced_train_loss": 11.159525, ...}}

NeMo 2 prints lines, and the time of each checkpoint::

    Training epoch 0, iteration 1/19 | lr: 3e-6 | global_step: 1 | reduced_train_loss: 9.1 | train_step_timing in s: 5.7
    Global Checkpoint Save : Rank: 0 : Iteration: 1 : Start time: 1750.9s : Save duration: 0.446s

Lightning ends both::

    `Trainer.fit` stopped: `max_steps=20` reached.

The records of MLPerf are read by mlperf_log.py.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

from llmb import LineParser, Notice, Step
from llmb_nemo_launcher import dllogger_file
from llmb_nemo_launcher.mlperf_log import RECORD, MLPerfRecords
from llmb_nemo_launcher.step_numbers_of_bars import ROUNDED_STEP, Bar, DrawnBar
from llmb_nemo_launcher.wrapped_lines import FOUR_DIGITS, continue_line

_STEP_TIME, _STEP_LOSS = "train_step_timing in s", "reduced_train_loss"

_BAR_BEGIN = b"Epoch "
_TIME, _LOSS = b"train_step_timing in s=", b"reduced_train_loss="
_BUFFER = b"buffer_size: "
"""Part of the configuration that NeMo prints at its start: the number of steps over which it averages times."""

_LINE = b"Training epoch "
_TIME_FIELD, _LOSS_FIELD = b"train_step_timing in s: ", b"reduced_train_loss: "
_SAVED = b"Global Checkpoint Save : Rank: 0 :"
_STOPPED = b"`Trainer.fit` stopped: `max_steps="
_LINE_NEEDLES = (_LINE, _SAVED, _STOPPED)
_WRAPPED_NEEDLES = (*_LINE_NEEDLES, b"\n", b": ")
"""Texts to search for in a log of NeMo 2, and after a line that may be wrapped: any next line, with or without an end.
"""

_CHECKED_LINES = 50  # without a continuation, until lines are no longer expected to be wrapped; the check takes long

_MAX_STEPS = 10**15  # a longer number is garbled
_SAVED_S = re.compile(rb"Iteration: \d{1,15} : .*Save duration: (\d{1,12}\.\d+)s")
_ALL_STEPS = re.compile(rb"stopped: `max_steps=(\d{1,15})` reached")
_PLACE = re.compile(rb"(\d{1,15})(?:/(?:(\d{1,15})|\?)|it)")
_ITERATION = re.compile(rb"Training epoch \d+, iteration (\d{1,15})/(\d{1,15}) \| ")
_GLOBAL_STEP = re.compile(rb"global_step: (\d{1,15})\s*(?:\||$)")
_DLLOGGER = re.compile(rb"DLL \S+ \S+ - (\d{1,15}) ")
_BUFFER_SIZE = re.compile(rb"(?:^|[\s|])buffer_size: (\d{1,6})\s*$")
_NUMBER = re.compile(r"-?(?:\d++(?>\.\d++|)(?!\.|,\d)(?:e[+-]?\d+)?|nan|inf)")


class NeMoLog(LineParser):
    """Parser of both generations, and of the records of DLLogger and MLPerf; the first one with a step counts.

    The step of a bar is the 2 of 2/20, after the steps of the epochs before, because its ``global_step`` is rounded.
    If DLLogger prints the same step, its numbers count.

    NeMo 2 counts iterations per epoch, and the step is ``global_step``. Its values are means since the line before
    (``log_interval``). Copies of such lines may be wrapped. Then the step is returned again with the fields of each
    further line.

    ``timing_buffer`` is the number of steps over which NeMo 1 averages its times, if the recipe states it; otherwise
    the log may. ``first_step`` is for a run, because it must be known before there is a log. ``printed_every`` is the
    interval of the printed steps.
    """

    def __init__(
        self, timing_buffer: int | None = None, *, first_step: int | None = None, printed_every: int = 1
    ) -> None:
        super().__init__()
        self.first_step, self.printed_every = first_step, printed_every
        self._begun = False  # True once a step was read, so that the generation of the log is known
        buffer = (_BUFFER,) if timing_buffer is None else ()
        self.needles = (_TIME, _LOSS, _LINE, _STOPPED, RECORD, dllogger_file.RECORD, *buffer)
        self._mlperf = MLPerfRecords()
        self._buffer = timing_buffer
        self._drawn: dict[tuple[str, bytes], DrawnBar] = {}
        self._total = 0
        self._has_times = False  # True if a line of NeMo 2 contains the time of the step
        self._wrapped_label: bytes | None = None  # of a line of NeMo 2 that may continue on the next line
        self._lines_to_check = defaultdict[str, int](lambda: _CHECKED_LINES)  # of each source

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        """Return the steps of a line (several if bars were joined), the total number of steps, and the end."""
        return [*self._read_steps(line, torn=False), *self._read_stop(line)]

    def _read_steps(self, line: bytes, *, torn: bool) -> Iterable[Step | Notice]:
        if RECORD in line:
            return self._read_mlperf(line)
        if dllogger_file.RECORD in line:
            return self._read_dllogger(line)
        if _LINE in line:
            self._lines_to_check[self.source] -= 1
            return self._read_iteration(line, torn=torn)
        if _SAVED in line:
            saved = _SAVED_S.search(line)
            return [Notice(kind="checkpoint", text=saved[0].decode(), time_s=float(saved[1]))] if saved else []
        if self._wrapped_label is not None:
            return self._read_wrapped(line, self._wrapped_label, torn=torn) if line.strip() else []
        bars = line.split(_BAR_BEGIN)[1:]
        return [found for bar in bars for found in self._read_bar(bar)] if bars else self._read_buffer(line)

    def _read_stop(self, line: bytes) -> list[Step | Notice]:
        stop = _ALL_STEPS.search(line)
        return [*self._total_steps(int(stop[1])), Notice(kind="finished")] if stop else []

    def read_torn_line(self, line: bytes) -> Iterable[Step | Notice]:
        """Return the steps of a line without a line end, but not a last number that may lack digits."""
        return [*self._read_steps(line, torn=True), *self._read_stop(line)]

    def close(self) -> list[Step | Notice]:
        """Return the steps of unfinished last lines, and the losses of an MLPerf log without a time."""
        found = super().close()
        return [*found, *(() if self._begun else self._mlperf.losses)]

    def _read_iteration(self, line: bytes, *, torn: bool) -> list[Step | Notice]:
        match = _ITERATION.search(line)
        cut = line.rstrip().endswith(b"|")
        wrapped = cut or _TIME_FIELD not in line  # unless the log has no times
        may_continue = wrapped or self._lines_to_check[self.source] > 0
        if may_continue or self._begun:
            self._search_lines(wrapped=may_continue)
        if not match:
            return []
        iteration, total = int(match[1]), int(match[2]) + 1
        number = _GLOBAL_STEP.search(line)
        numbered = number and int(number[1]) >= iteration  # not less, unless digits are on the next line
        if not numbered and wrapped and (cut or _LOSS_FIELD not in line):
            return []
        step = _iteration(iteration, line[match.end() :], torn=torn)
        if step is None:
            return []
        if not self._begun:
            self._has_times = step.time_s is not None
            self._begun, self.first_step = True, 0
            self._search_lines(wrapped=may_continue)
        elif torn and self._has_times and step.time_s is None:
            return []  # cut off before its time
        return [*self._total_steps(_total_of_epochs(total, step.step - iteration)), step]

    def _read_wrapped(self, line: bytes, label: bytes, *, torn: bool) -> list[Step | Notice]:
        """Return the step of NeMo 2 whose record began in a line before, with the fields that are printed so far."""
        before = self.text_before()
        begin = before.rfind(_LINE)
        printed = before[begin:].replace(b"\n" + label, b"\n") if self.label else before[begin:]
        same_rank = self.label.rstrip() in (label.rstrip(), b"")
        joined = continue_line(printed, line.removeprefix(label)) if begin >= 0 and same_rank else None
        if joined is None:
            self._search_lines(wrapped=False)
            return []
        self._lines_to_check[self.source] = _CHECKED_LINES
        self.label = label  # a terminal prints it only once
        return self._read_iteration(joined, torn=torn)

    def _read_mlperf(self, line: bytes) -> list[Step | Notice]:
        found = self._mlperf.read(line)
        if not self._begun and any(isinstance(item, Step) for item in found):
            self._begin(1, RECORD)
        return found

    def _read_dllogger(self, line: bytes) -> list[Step | Notice]:
        record = dllogger_file.read_record(line)
        if record is None or not {_STEP_TIME, _STEP_LOSS} & record[1].keys():
            return []
        if not self._begun:
            self._begin(1, dllogger_file.RECORD)
        return [self._averaged_step(record[0] + 1, record[1])]

    def _read_bar(self, text: bytes) -> list[Step | Notice]:
        bar = Bar.find(text)
        if bar is None or not self._drawn_here().is_new_step(bar):
            return []
        step = self._bar_step(bar)
        if step is None:
            return []
        if not self._begun:
            self._begin(1, _TIME if _TIME in bar.fields else _LOSS, _STOPPED)
        _, _, total = bar.place.partition(b"/")
        return [*self._total_steps(self._whole_total(int(total), step.step)), step] if total.isdigit() else [step]

    def _bar_step(self, bar: Bar) -> Step | None:
        count = _PLACE.fullmatch(bar.place)
        if count is None:
            return None
        values = _values(bar.fields, ", ", "=")
        if not values or not int(count[1]):  # no step of this epoch is done
            return None
        global_step = None if ROUNDED_STEP.search(bar.fields) else values.get("global_step")
        number = self._drawn_here().number(bar.epoch, int(count[1]), global_step)
        exact = _DLLOGGER.match(bar.after)
        if exact and int(exact[1]) + 1 == number:
            values |= _values(bar.after[exact.end() :], "  ", " : ")
        return self._averaged_step(number, values)

    def _averaged_step(self, number: int, values: dict[str, float]) -> Step:
        """Return a step of NeMo 1, which averages its times over the steps of the buffer."""
        return _step(number, values, mean_of=max(1, min(number, self._buffer or 1)))

    def _read_buffer(self, line: bytes) -> Iterable[Step | Notice]:
        """Read the averaging buffer from the configuration, which NeMo prints before the first step."""
        if not self._begun and self._buffer is None and (size := _BUFFER_SIZE.search(line)):
            self._buffer = int(size[1])
        return ()

    def _drawn_here(self) -> DrawnBar:
        return self._drawn.setdefault((self.source, self.label), DrawnBar())

    def _begin(self, first_step: int, *needles: bytes) -> None:
        """Note the generation of the log, and search for nothing else."""
        self._begun, self.first_step, self.needles, self._wrapped_label = True, first_step, needles, None

    def _search_lines(self, *, wrapped: bool) -> None:
        """Search for lines of NeMo 2 and, if the last one is wrapped, for its other fields."""
        self._wrapped_label = self.label if wrapped else None
        self.needles = _WRAPPED_NEEDLES if wrapped else _LINE_NEEDLES

    def _whole_total(self, total: int, number: int) -> int:
        """Return the number of steps up to the end of this epoch. Megatron's bar shows that of all epochs instead."""
        return total if number <= total else self._drawn_here().before_epoch + total

    def _total_steps(self, total: int) -> list[Notice]:
        if total == self._total:
            return []
        self._total = total
        return [Notice(kind="total steps", text=f"{total} steps", value=total)]


def _total_of_epochs(total: int, before: int) -> int:
    """Return the number of steps up to the end of an epoch with so many steps, and with steps before it.

    With ``max_steps``, NeMo 2 shows the number of all epochs instead, which is more than there are steps before.
    The iterations of a run that resumed may begin anywhere, so only steps of complete epochs count.
    Source: ProgressPrinter in nemo/lightning/pytorch/callbacks/progress_printer.py (NVIDIA/NeMo).
    """
    return total + before if before >= total and before % total == 0 else total


def _iteration(iteration: int, text: bytes, *, torn: bool) -> Step | None:
    """Return the step of NeMo 2's fields, or None if they have no number."""
    if torn:
        complete, _, last = text.rpartition(b" | ")
        text = text if _is_complete(last) else complete
    values = _values(text, " | ", ": ")
    if not values:
        return None
    number = values.pop("global_step", float(iteration))
    return _step(int(number), values, mean_of=None) if 0 <= number < _MAX_STEPS else None


def _values(text: bytes, between: str, after_name: str) -> dict[str, float]:
    """Return names and numbers. Skip values that are not numbers (``v_num=None``)."""
    found = {}
    for field in text.decode(errors="replace").split(between):
        name, separator, value = field.partition(after_name)
        if not separator or name == "v_num":
            continue
        try:
            found[name] = float(value)
        except ValueError:
            if number := _NUMBER.match(value):  # other text follows without a separator
                found[name] = float(number[0])
    return found


def _is_complete(field: bytes) -> bool:
    """Check whether a field without an end has all its digits."""
    name, _, value = field.partition(b": ")
    return name.decode(errors="replace") in (_STEP_TIME, _STEP_LOSS) and FOUR_DIGITS.fullmatch(value) is not None


def _step(number: int, values: dict[str, float], mean_of: int | None) -> Step:
    lightning_loss = values.pop("loss", None)  # Lightning's own loss, before NeMo printed another one
    return Step(
        step=number,
        time_s=values.pop(_STEP_TIME, None),
        loss=values.pop(_STEP_LOSS, lightning_loss),
        tflops_per_gpu=values.pop("TFLOPS_per_GPU", None),
        tokens_per_s_per_gpu=values.pop("tokens_per_sec_per_gpu", None),
        other_values=values,
        mean_of=mean_of,
    )
