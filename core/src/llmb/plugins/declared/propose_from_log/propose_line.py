"""A `line` of [log] from an existing log."""

import re
from collections.abc import Mapping
from typing import Final

from llmb.logs.ansi_escapes import without_escapes
from llmb.logs.rank_labels import split_label
from llmb.plugins.declared.line_patterns import LinePattern, compile_line
from llmb.plugins.declared.propose_from_log.guess_names import name_numbers
from llmb.plugins.declared.propose_from_log.line_shapes import BAR, Shape, find_shapes
from llmb.plugins.declared.value_names_and_units import KNOWN
from llmb.values.errors import SpecError

_RATE: Final = re.compile(r"\{time_s\}s/([a-z]+)|\{steps_per_s\}([a-z]+)/s")


def propose_lines(log: bytes) -> list[str]:
    """Return the `line` that reads the steps of a log, or several, or nothing if the log has no steps.

    Shapes with an integer that rises come first, then those with a time or a rate and a loss, then those with a word
    such as step before the integer, and then the most frequent one. A shape without such an integer needs several
    lines, and a time or a rate.
    """
    data, _ = without_escapes(log)
    lines = [split_label(line)[1] for line in data.splitlines()]
    shapes = sorted(filter(_has_steps, find_shapes(lines)), key=_precedence, reverse=True)
    for number, shape in enumerate(shapes):
        if line := _propose(shape):
            bars = [_propose(each) for each in shapes[number + 1 :] if _has_bar(shape) and _has_bar(each)]
            proposed = [line, *(each for each in bars if each and line.startswith(each))]
            return list(dict.fromkeys((*proposed, *map(_with_other_rate, proposed))))
    return []


def _has_bar(shape: Shape) -> bool:
    """Check whether a progress bar comes before the step number. Only some bars may have a loss behind them."""
    return shape.step is not None and BAR in shape.texts[shape.step]


def _with_other_rate(line: str) -> str:
    """Return a line with ``it/s`` instead of ``s/it``, or the reverse. tqdm prints the rate if it exceeds 1."""
    if "{step}" not in line or not (rate := _RATE.search(line)):
        return line
    other = f"{{steps_per_s}}{rate[1]}/s" if rate[1] else f"{{time_s}}s/{rate[2]}"
    return line.replace(rate[0], other)


def _has_steps(shape: Shape) -> bool:
    """Check whether the lines have a step number, or are several lines with a time or a rate, which llmb counts."""
    return shape.step is not None or (len(shape.rows) > 1 and bool(_metrics(shape) - {"loss"}))


def _precedence(shape: Shape) -> tuple[bool, int, bool, int]:
    names = _metrics(shape)
    return shape.step is not None, ("loss" in names) + bool(names - {"loss"}), shape.names_step, len(shape.rows)


def _metrics(shape: Shape) -> set[str]:
    return set(name_numbers(shape).values()) & set(KNOWN) - {"step", "total_steps"}


def _propose(shape: Shape) -> str | None:
    """Return the line of a shape. Names that would read another number are left out."""
    names = name_numbers(shape)
    while names:
        try:
            line = compile_line(_write(shape, names), "log.line")
        except SpecError:
            return None
        wrong = _misread(shape, names, line)
        if wrong is None:
            return line.text
        del names[wrong]
    return None


def _misread(shape: Shape, names: Mapping[int, str], line: LinePattern) -> int | None:
    """Return the first column that the line does not read from a log line of the shape, or None."""
    for row, text in zip(shape.rows, shape.lines, strict=True):
        found = line.read(text)
        if found is None:
            return list(names)[-1]
        wrong = next((each for each, name in names.items() if found[name] != row[each].encode()), None)
        if wrong is not None:
            return wrong
    return None


def _write(shape: Shape, names: Mapping[int, str]) -> str:
    """Return the text of a line. ``...`` replaces numbers without a name and the texts around them."""
    line, before = "", None
    for column, name in names.items():
        if before is None:
            line = _escape(shape.label(column))
        elif column == before + 1 and BAR not in shape.texts[column]:
            line += _escape(shape.texts[column])
        else:
            line += f"{_escape(shape.unit(before))} ... {_escape(shape.label(column))}"
        line += f"{{{name}}}"
        before = column
    return line + ("" if before is None else _escape(shape.unit(before)))


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
