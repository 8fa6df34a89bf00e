"""A name for each number of a step line, guessed from the words next to it."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from llmb.plugins.declared.propose_from_log.line_shapes import TIME, Shape
from llmb.plugins.declared.value_names_and_units import KNOWN, OTHER_UNITS, SAME_VALUE, TIMES, UNITS, check_names

LONGEST_NAME: Final = 40

_PER_GPU: Final = re.compile(r"gpu|device|chip|rank|\btps\b")
_PER_SECOND: Final = r"(?:/ ?s(?:ec|econds?)?\b|_per_s(?:ec|econd)?(?![a-z])| per (?:sec|second)\b|p/s)"
_RATES: Final = {
    "tokens": re.compile(rf"(?:(?:tok|token)s?{_PER_SECOND})|\btps\b|\btgs\b"),
    "samples_per_s": re.compile(rf"(?:samples?|seqs?|sequences?|img|images?){_PER_SECOND}"),
    "steps_per_s": re.compile(rf"(?:\bit|iters?|iterations?|steps?){_PER_SECOND}"),
}
_TFLOPS: Final = re.compile(r"(?<![a-z])t(?:era)?flop")
_OTHER_TIME: Final = re.compile(r"(?<![a-z])(?:eta|remaining|left|total|data|forward|backward|optimizer|load|loading)")
_OTHER_LOSS: Final = re.compile(r"val|eval|test|aux|balanc")
_VALIDATION: Final = re.compile(r"(?<![a-z])(?:val|valid|validation|eval|evaluation|test)(?![a-z])")
_SINCE_1970: Final = {"time_s": 1e9, "time_ms": 1e12}
"""Numbers from which a time is one of day, since 1970."""

_OTHER_UNIT: Final = re.compile(rf"(?:{OTHER_UNITS})(?![a-z])")
_LABEL_UNIT: Final = re.compile(
    rf"(?<![a-z])({'|'.join(unit for unit in UNITS if unit != 'min')})(?![a-z])|(?<![a-z])(min)\W*$"
)
"""A unit in the text before a number. Elsewhere than at its end, ``min`` is the minimum."""

_PER_STEP: Final = re.compile(
    rf"^\W*(?:{'|'.join(UNITS)})(?:/| per )(?:steps?|iter(?:ation)?s?|it|updates?|batch(?:es)?)\W*$"
)
"""The unit of a step time, such as ``s/it`` or ``sec per update``."""

_EXTREME: Final = re.compile(r"(?<![a-z])(?:min|max)\W*$")
_MAXIMUM: Final = re.compile(r"(?<![a-z])max(?![a-z_])", re.IGNORECASE)


def name_numbers(shape: Shape) -> dict[int, str]:
    """Return the name of each number of a step line, by its column.

    Numbers with a meaning get their known name, and others a name of their own from the words before them. Constants,
    counters and times of day have no name.
    """
    columns = [column for column, values in enumerate(shape.values) if values]
    names = _counters(shape, columns)
    for _, column, name in sorted(_known_names(shape, columns)):
        if column not in names and not _is_taken(name, names.values()):
            names[column] = name
    if any(name in TIMES for name in names.values()):  # which counts, not the rate
        names = {column: name for column, name in names.items() if name != "steps_per_s"}
    for column in columns:
        name = _own_name(shape.words_before(column))
        if column not in names and name and name not in names.values() and _is_metric(shape, column):
            names[column] = name
    return dict(sorted(names.items()))


def _counters(shape: Shape, columns: list[int]) -> dict[int, str]:
    """Return the names of the step number and of the number of steps behind it."""
    step = shape.step
    if step is None:
        return {}
    is_total = step + 1 in columns and (len(shape.rows) == 1 or not shape.rises(step + 1))
    has_total = is_total and shape.texts[step + 1].strip() in ("/", "of")
    return {step: "step", step + 1: "total_steps"} if has_total else {step: "step"}


def _is_taken(name: str, names: Iterable[str]) -> bool:
    """Check whether a line has a number of this name, or the same value in another unit."""
    same = next((group for group in SAME_VALUE if name in group), {name: 1})
    return any(each in same for each in names)


def _is_metric(shape: Shape, column: int) -> bool:
    """Check whether a number is no constant, no counter that rises on every line, and no result of a validation.

    Of a single line, every integer may be a constant or a counter. Only some lines have results of a validation.
    """
    return not (shape.is_constant(column) or shape.rises(column) or _VALIDATION.search(shape.label(column).lower()))


def _known_names(shape: Shape, columns: list[int]) -> Iterator[tuple[int, int, str]]:
    """Yield each number that may have a known name: its precedence, its column and the name."""
    for column in columns:
        label, unit = shape.words_before(column).lower(), shape.words_after(column).lower()
        around = f"{label} {unit}"
        if column == shape.step:
            continue
        if rate := _name_rate(around):
            yield 0, column, rate
        elif _TFLOPS.search(around):
            is_sum = re.search(r"total|global|aggregate|cluster", around)
            yield 0, column, "tflops" if is_sum else "tflops_per_gpu"
        elif re.search(r"(?:loss|nll)[\"'\])]*\s*[:=]?\s*$", label) and not _OTHER_LOSS.search(label):
            yield 0 if re.match(r"\W*(?:loss|nll)", label) else 1, column, "loss"
        elif not _is_part_of_time(shape, column) and (time := _name_time(shape, column)):
            since_1970 = time in _SINCE_1970 and min(shape.values[column]) > _SINCE_1970[time]
            name = time.replace("time", "clock") if since_1970 else time
            is_only_behind_step = shape.is_time_of_step(column)  # any other time of the line comes first
            yield 2 if is_only_behind_step else 0 if re.search("step|iter", label) else 1, column, name


def _name_rate(around: str) -> str:
    found = next((name for name, pattern in _RATES.items() if pattern.search(around)), "")
    if found == "tokens":
        return "tokens_per_s_per_gpu" if _PER_GPU.search(around) else "tokens_per_s"
    return found


def _is_part_of_time(shape: Shape, column: int) -> bool:
    """Check whether a number is the minutes or seconds of a time, or the minimum or maximum of several times."""
    is_extreme = _EXTREME.search(shape.words_before(column).lower())
    return shape.is_of_duration(column) or bool(is_extreme and any(map(_MAXIMUM.search, shape.texts)))


def _name_time(shape: Shape, column: int) -> str:
    """Return the name of the step time with its unit, or "" for any other number."""
    label, unit = shape.words_before(column).lower(), shape.words_after(column).lower()
    is_per_step = _PER_STEP.search(unit or label)
    name = UNITS.get(re.split(r"[^a-z\u00b5\u03bc]", unit)[0])
    is_time = TIME.search(label) or is_per_step or (name and shape.is_time_of_step(column))
    if not is_time or _OTHER_TIME.search(label) or _OTHER_UNIT.match(unit):
        return ""
    if name:
        return name
    found = _LABEL_UNIT.search(label.replace("_", " "))
    return UNITS[found[1] or found[2]] if found else "time_s"


def _own_name(label: str) -> str:
    """Return a name of the user's own from the words of a label, or "" if it has none."""
    name = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")
    if name in KNOWN or check_names([name], ""):
        name += "_value"
    is_name = re.fullmatch(r"[a-z][a-z0-9_]+", name) and len(name) <= LONGEST_NAME
    return name if is_name and not check_names([name], "") and name not in KNOWN else ""
