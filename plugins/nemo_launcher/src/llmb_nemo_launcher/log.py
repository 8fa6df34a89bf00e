"""NeMo's step lines: the progress bar of NeMo 1, and the lines of NeMo 2."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import attrs

from llmb import LineParser, Notice, Step

_NAMES = {
    "train_step_timing in s": "time_s",
    "reduced_train_loss": "loss",
    "TFLOPS_per_GPU": "tflops_per_gpu",
    "tokens_per_sec_per_gpu": "tokens_per_s_per_gpu",
}

_BAR_BEGIN = b"Epoch "
_TIME, _LOSS = b"train_step_timing in s=", b"reduced_train_loss="
_LINE = b"Training epoch "
_BUFFER = b"buffer_size: "
"""In the configuration that NeMo prints at its start: over how many steps it averages the times that it prints."""

_USUAL_BAR = re.compile(
    rb"Epoch \d+: [^\[]* ((\d{1,15})/(\d{1,15})) \[[^],]*+"
    rb"(, (?:[^]]*, )?(?:train_step_timing in s|reduced_train_loss)=\d[^]]*+)\]"
)
_USUAL_ITERATION = re.compile(
    rb"Training epoch \d+, iteration \d{1,15}/(\d{1,15}) \| (?:[^|]* \| )*?global_step: (\d{1,15}) \| "
)
_MOST_STEPS = 10**15  # what has more digits is garbled
_PLACE = re.compile(rb"(\d{1,15})(?:/(?:(\d{1,15})|\?)|it)")
_ITERATION = re.compile(rb"Training epoch \d+, iteration (\d{1,15})/(\d{1,15}) \| ")
_DLLOGGER = re.compile(rb"DLL \S+ \S+ - (\d{1,15}) ")
_BUFFER_SIZE = re.compile(rb"(?:^|[\s|])buffer_size: (\d{1,6})\s*$")
_ROUNDED_STEP = re.compile(rb"global_step=[\d.]+e")
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|nan|inf)")
_FOUR_DIGITS = re.compile(r"(?!0*\.?0)[\d.]{5}")


@attrs.frozen
class _Bar:
    """What is printed between the brackets of a bar, before them (the 2/20) and behind them."""

    place: bytes
    figures: bytes
    after: bytes

    @classmethod
    def of(cls, line: bytes, begin: int, end: int) -> _Bar | None:
        """The bar of that part of a line; a bar without an end has no last figure, of which digits may be missing."""
        opened = line.find(b" [", begin, end)
        if opened < 0:
            return None
        closed = line.find(b"]", opened, end)
        figures_end = closed if closed > 0 else line.rfind(b", ", opened, end)
        return cls(
            place=line[line.rfind(b" ", begin, opened) + 1 : opened],
            figures=line[line.find(b", ", opened, end) : figures_end],
            after=line[closed + 1 : end] if closed > 0 else b"",
        )


@attrs.define
class _Drawn:
    """What one rank has drawn: its last bar, and the last step of which the figures were told."""

    place: bytes = b""
    figures: bytes = b""
    told: bytes = b""

    def is_new_step(self, place: bytes, figures: bytes) -> bool:
        """Whether these are figures of this very step; ``place`` is the 2/20 of the bar.

        A bar is drawn two or three times a step: the first time with the figures of the step before, and at the end
        of training again with those it had. Figures that did not change are old; only where the step among them is
        rounded (3.1e+4) may a second bar have new ones that look the same.
        """
        unchanged, again = figures == self.figures, place == self.place
        self.place, self.figures = place, figures
        if unchanged and (place == self.told or not (again and _ROUNDED_STEP.search(figures))):
            return False
        self.told = place
        return True


class NeMoLog(LineParser):
    """Reads both generations; a log has one of them.

    NeMo 1 draws ``Epoch 0: :  10%|█ | 2/20 [00:49<07:25, reduced_train_loss=11.20, global_step=1.000, ...]``. Its
    figures have some four digits, so the step is the 2 of 2/20; where DLLogger prints the same step in full, that
    counts. NeMo 2 prints ``Training epoch 0, iteration 1/19 | global_step: 1 | ...``, in which the iteration is of an
    epoch and the step is ``global_step``. ``timing_buffer`` is the number of steps over which NeMo 1 averages its
    times, where the recipe states it; else the log itself may. ``first_step`` is for a run, of which it is known before
    there is a log; ``printed_every`` is which of its steps are printed.
    """

    def __init__(
        self, timing_buffer: int | None = None, *, first_step: int | None = None, printed_every: int = 1
    ) -> None:
        super().__init__()
        self.first_step, self.printed_every = first_step, printed_every
        self._begun = False  # whether a step was read, and the log's generation is known
        self.needles = (_TIME, _LOSS, _LINE, _BUFFER) if timing_buffer is None else (_TIME, _LOSS, _LINE)
        self._buffer = timing_buffer
        self._drawn: dict[tuple[str, bytes], _Drawn] = {}
        self._total = b""  # as it is printed
        self._has_times = False  # whether a line of NeMo 2 states the step's time

    def glance(self, line: bytes) -> tuple[int, bytes] | None:
        """A bar, or a line, that is like the ones before: of the same generation, and with the same total."""
        if not self._begun or b"nan" in line:
            return None
        if _LINE in line:
            iteration = _USUAL_ITERATION.search(line)
            if iteration is None or iteration[1] != self._total:
                return None
            return int(iteration[2]), line[iteration.start() :]
        bar = _USUAL_BAR.search(line)
        if bar is None or bar[3] != self._total or line.count(_BAR_BEGIN) > 1:
            return None
        if not self._drawn_here().is_new_step(bar[1], bar[4]):
            return self.nothing_new
        return int(bar[2]), line[bar.start() :]

    def read_step(self, text: bytes) -> Step:
        """As `read_line`, where the text begins with the bar or the line."""
        step = self._iteration(text, torn=False) if text.startswith(_LINE) else self._bar(_Bar.of(text, 0, len(text)))
        assert step is not None
        return step

    def read_line(self, line: bytes) -> list[Step | Notice]:
        """The steps of a line, more than one where bars were glued together, and how many there will be."""
        if _LINE in line:
            return list(self._read_iteration(line, torn=False))
        begin = line.find(_BAR_BEGIN)
        if begin < 0:
            return self._read_buffer(line)
        following = line.find(_BAR_BEGIN, begin + 1)
        if following < 0:
            return self._read_bar(line, begin, len(line))
        return self._read_bar(line, begin, following) + self.read_line(line[following:])

    def read_torn_line(self, line: bytes) -> list[Step | Notice]:
        """As `read_line`, without a last figure of which digits may be missing."""
        return list(self._read_iteration(line, torn=True)) if _LINE in line else self.read_line(line)

    def _read_iteration(self, line: bytes, *, torn: bool) -> Iterator[Step | Notice]:
        match, step = _ITERATION.search(line), self._iteration(line, torn=torn)
        if match and step:
            if not self._begun:
                self._has_times = step.time_s is not None
            elif torn and self._has_times and step.time_s is None:
                return  # cut off before its time
            self._begin(0, (_LINE,))
            yield from self._total_steps(match[2], int(match[2]) + 1)
            yield step

    def _iteration(self, line: bytes, *, torn: bool) -> Step | None:
        match = _ITERATION.search(line)
        if match is None:
            return None
        fields = line[match.end() :].decode(errors="replace").split(" | ")
        if torn and not _is_whole(fields[-1]):
            fields.pop()
        figures = _figures(field.partition(": ") for field in fields)
        if not figures:
            return None
        usual = _USUAL_ITERATION.match(line, match.start())
        printed = figures.pop("global_step", float(match[1]))
        number = int(usual[2]) if usual else printed  # as it is told at a glance, where two lines were glued together
        return _step(int(number), figures) if 0 <= number < _MOST_STEPS else None

    def _read_bar(self, line: bytes, begin: int, end: int) -> list[Step | Notice]:
        bar = _Bar.of(line, begin, end)
        if bar is None or not self._drawn_here().is_new_step(bar.place, bar.figures):
            return []
        step = self._bar(bar)
        if step is None:
            return []
        self._begin(1, (_TIME,) if _TIME in bar.figures else (_LOSS,))
        _, _, total = bar.place.partition(b"/")
        return [*self._total_steps(total, int(total)), step] if total.isdigit() else [step]

    def _bar(self, bar: _Bar | None) -> Step | None:
        count = _PLACE.fullmatch(bar.place) if bar else None
        if bar is None or count is None:
            return None
        figures = _figures(field.partition("=") for field in bar.figures.decode(errors="replace").split(", "))
        if not figures:
            return None
        number = int(count[1])
        exact = _DLLOGGER.match(bar.after)
        if exact and int(exact[1]) + 1 == number:
            pairs = bar.after[exact.end() :].decode(errors="replace").split("  ")
            figures |= _figures(pair.partition(" : ") for pair in pairs)
        return _step(number, figures, mean_of=max(1, min(number, self._buffer or 1)))

    def _read_buffer(self, line: bytes) -> list[Step | Notice]:
        """Before the first step, the configuration tells over how many steps times will be averaged."""
        if not self._begun and self._buffer is None and (size := _BUFFER_SIZE.search(line)):
            self._buffer = int(size[1])
        return []

    def _drawn_here(self) -> _Drawn:
        key = (self.source, self.label)
        drawn = self._drawn.get(key)
        if drawn is None:
            drawn = self._drawn[key] = _Drawn()
        return drawn

    def _begin(self, first_step: int, needles: tuple[bytes, ...]) -> None:
        """The log's generation is known: nothing else need be looked for."""
        if not self._begun:
            self._begun, self.first_step, self.needles = True, first_step, needles

    def _total_steps(self, printed: bytes, total: int) -> Iterator[Notice]:
        if printed != self._total:
            self._total = printed
            yield Notice(kind="total steps", text=f"{total} steps", value=total)


def _figures(pairs: Iterable[tuple[str, str, str]]) -> dict[str, float]:
    """The pairs of a name and a number; what is no number (``v_num=None``) is left out."""
    found = {}
    for name, separator, value in pairs:
        if not separator or name == "v_num":
            continue
        try:
            found[name] = float(value)
        except ValueError:
            if number := _NUMBER.match(value):  # something is glued to it
                found[name] = float(number[0])
    return found


def _is_whole(field: str) -> bool:
    """Whether a field that nothing ends has all its digits: NeMo 2 prints four, and drops zeros at the end."""
    name, _, value = field.partition(": ")
    return _NAMES.get(name) in ("time_s", "loss") and _FOUR_DIGITS.fullmatch(value) is not None


def _step(number: int, figures: Mapping[str, float], mean_of: int = 1) -> Step:
    known: dict[str, float] = {}
    more: dict[str, float] = {}
    for name, value in figures.items():
        if name in _NAMES:
            known[_NAMES[name]] = value
        else:
            more[name] = value
    if "loss" in more:  # Lightning's own, before NeMo printed another
        known.setdefault("loss", more.pop("loss"))
    return Step(step=number, mean_of=mean_of, figures=more, **known)  # type: ignore[arg-type]  # names of floats
