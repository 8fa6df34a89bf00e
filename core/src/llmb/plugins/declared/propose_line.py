"""A `line` of [log] from an existing log."""

from __future__ import annotations

from collections.abc import Mapping

from llmb.logs.ansi_escapes import without_escapes
from llmb.logs.rank_labels import LABEL
from llmb.plugins.declared.guess_names import name_numbers
from llmb.plugins.declared.log_lines import LogLine, compile_line
from llmb.plugins.declared.log_shapes import Shape, find_shapes
from llmb.plugins.declared.number_names import KNOWN
from llmb.values.errors import SpecError


def propose_line(log: bytes) -> str | None:
    """Return a `line` that reads the steps of a log, or None if the log has none.

    Shapes with an integer that rises come first, then those with a time or a rate and a loss, then those with a word
    such as step before the integer, and then the most frequent one. A shape without such an integer needs several
    lines, and a time or a rate.
    """
    data, _ = without_escapes(log)
    lines = [line[len(label[0]) if (label := LABEL.match(line)) else 0 :] for line in data.splitlines()]
    shapes = find_shapes(line.decode(errors="replace") for line in lines)
    for shape in sorted(filter(_has_steps, shapes), key=_precedence, reverse=True):
        if line := _propose(shape):
            return line
    return None


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


def _misread(shape: Shape, names: Mapping[int, str], line: LogLine) -> int | None:
    """Return the first column that the line does not read from the first log line of the shape, or None."""
    row = shape.rows[0]
    text = "".join(f"{before}{number}" for before, number in zip(shape.texts, (*row, ""), strict=True))
    found = line.read(text.encode())
    if found is None:
        return list(names)[-1]
    return next((each for each, name in names.items() if found[name] != row[each].encode()), None)


def _write(shape: Shape, names: Mapping[int, str]) -> str:
    """Return the text of a line. ``...`` replaces numbers without a name and the texts around them."""
    line, before = "", None
    for column, name in names.items():
        if before is None:
            line = _escape(shape.label(column))
        elif column == before + 1:
            line += _escape(shape.texts[column])
        else:
            line += f"{_escape(shape.unit(before))} ... {_escape(shape.label(column))}"
        line += f"{{{name}}}"
        before = column
    return line + ("" if before is None else _escape(shape.unit(before)))


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
