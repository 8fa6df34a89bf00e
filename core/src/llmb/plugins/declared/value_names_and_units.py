"""The names of numbers in [log], with their units."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from llmb.values.errors import Fault
from llmb.values.steps import COLUMNS
from llmb.values.texts.nearest_name import nearest_name

TIMES: Final[Mapping[str, float]] = {"time_s": 1, "time_ms": 1e3, "time_us": 1e6, "time_min": 1 / 60}
"""Names of the step time, with the units in a second."""

UNITS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "time_s"),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), "time_ms"),
    **dict.fromkeys(("us", "usec", "usecs", "\u00b5s", "\u03bcs", "microsecond", "microseconds"), "time_us"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "time_min"),
}
"""Words in logs for a unit of time, with the name of a step time in that unit."""

_GAP: Final = re.compile(r"(?<!\{)\{([a-z0-9_]+)\}")
"""A name in braces."""

_UNIT_AFTER: Final = re.compile(r"(?! min\b)[ \t]*([a-z\u00b5\u03bc]+)", re.IGNORECASE)
"""A unit in the text after a number. Behind a blank, ``min`` is the minimum of the next number."""

_UNIT_BEFORE: Final = re.compile(r"(?:[(\[]|_(?!min\b))([a-z\u00b5\u03bc]+)[)\]]?[\s:=|]*$", re.IGNORECASE)
"""A unit at the end of the text before a number: ``time (ms): `` or ``step_ms=``, but not ``step_min=``."""

OTHER_UNITS: Final = "d|days?|h|hrs?|hours?|m"
"""Units of a time that has a second number, as in ``1m 20s``: a pattern."""

CLOCKS: Final[Mapping[str, float]] = {"clock": 1, "clock_s": 1, "clock_ms": 1e3}
"""Names of the time of day, with the units in a second."""

TFLOPS_PER_GPU: Final[Mapping[str, float]] = {"tflops_per_gpu": 1, "gflops_per_gpu": 1e3, "flops_per_gpu": 1e12}
TOKENS_PER_S_PER_GPU: Final[Mapping[str, float]] = {"tokens_per_s_per_gpu": 1, "ktokens_per_s_per_gpu": 1e-3}
OF_ALL_GPUS: Final = ("tflops", "tokens_per_s")
NEED_RUN: Final = ("samples", "samples_per_s", *OF_ALL_GPUS)
"""Names of values that need the sizes of the run: its batch size or its number of GPUs."""

NUMBERS: Final = ("step", "samples")
"""Names of the step number."""

KNOWN: Final = (
    *(*NUMBERS, *TIMES, "steps_per_s", "samples_per_s", *CLOCKS),
    *(*TFLOPS_PER_GPU, *TOKENS_PER_S_PER_GPU, *OF_ALL_GPUS, "loss", "total_steps"),
)
"""The names with a meaning. Any other name is a metric of the user's own."""

SAME_VALUE: Final = (TIMES, CLOCKS, TFLOPS_PER_GPU, TOKENS_PER_S_PER_GPU)
"""Names of one value in several units. A line has at most one of each group."""

NEARLY_EQUAL: Final = 0.8
"""The similarity from which a name is taken for a misspelt known one."""


def check_names(names: Sequence[str], key: str) -> list[Fault]:
    """Return an error for each name that another value has, or nearly has, and for several names of one value."""
    errors = []
    for name in names:
        if name in COLUMNS and name not in KNOWN:
            message = f"{name} is a name that llmb uses for another value"
            errors.append(Fault(message=message, key=key, expected="another name for a metric of your own"))
        known = None if name in KNOWN else nearest_name(name, KNOWN, cutoff=NEARLY_EQUAL)
        if known and not known.startswith(f"{name}_"):
            expected = f"{known}, or a clearly different name for a metric of your own"
            errors.append(Fault(message=f"{name} is too similar to {known}", key=key, expected=expected))
    for group in SAME_VALUE:
        if len(found := [f"{{{name}}}" for name in names if name in group]) > 1:
            message = f"{' and '.join(found)} are one value in several units"
            expected = "one of them, and a name of your own for another number"
            errors.append(Fault(message=message, key=key, expected=expected))
    return errors


def check_units_of_line(line: str, key: str) -> Iterator[Fault]:
    """Yield an error for each step time of a line that has another unit in the line than in its name."""
    parts = _GAP.split(line)
    for before, name, after in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        yield from check_unit(name, before, key, after)


def check_unit(name: str, before: str, key: str, after: str = "") -> Iterator[Fault]:
    """Yield an error for a step time if the text beside the number has another unit than its name."""
    places = ((_UNIT_AFTER.match(after), f"{{{name}}}%s"), (_UNIT_BEFORE.search(before), f"%s{{{name}}}"))
    for found, place in places if name in TIMES else ():
        if found and (unit := UNITS.get(found[1].lower())):
            if unit != name:
                message = f"{place % found[0]!r} has two units"
                yield Fault(message=message, key=key, expected=f"{{{unit}}}")
            return
