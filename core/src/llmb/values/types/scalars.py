"""Types of single values, such as PositiveInt and Duration: what each of them accepts."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Self

import attrs

from llmb.values.errors import Fault
from llmb.values.texts.error_text import invalid_value

LARGEST = 2**31 - 1
"""The largest integer: frameworks and schedulers store their counts in 32 bits with a sign."""

LONGEST_S = 365 * 24 * 3600
"""The longest duration, a year: no scheduler allows longer jobs, and shells and dates overflow far above."""

DURATION = 'a duration such as "1h", "30m", "1h30m" or "90s", or a number of seconds'
"""The values of a duration, for messages."""

_DURATION = re.compile(r"(?:(\d{1,99})h)?(?:(\d{1,99})m)?(?:(\d{1,99})s)?")  # Python reads no number of 5,000 digits

VARIABLE_NAME = r"[A-Za-z_][A-Za-z0-9_]*"


class InvalidValueError(ValueError):
    """A value that does not have its type. The keys of ``errors`` are relative to the value: ``.name``, ``[0]``."""

    def __init__(self, *errors: Fault) -> None:
        super().__init__(*errors)
        self.errors = errors

    @classmethod
    def of(cls, value: Any, expected: str) -> Self:
        """Return the error of a value, with what was expected."""
        return cls(Fault(message=invalid_value(value), expected=expected))

    def __str__(self) -> str:
        return "; ".join(map(str, self.errors))


def with_prefix(prefix: str, errors: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the errors with this prefix before their relative keys."""
    return tuple(attrs.evolve(error, key=f"{prefix}{error.key or ''}") for error in errors)


@attrs.frozen
class ValueType:
    """A type with its description for messages. ``convert`` returns a value of it, or raises InvalidValueError.

    ``schema`` is its JSON Schema, which accepts every valid value and rejects those of another structure. All values of
    the Python types in ``unchanged`` are valid and stay as they are. In an annotation, ``Annotated[int,
    ValueType(...)]`` is an int for type checkers and this type for llmb.
    """

    expected: str
    convert: Callable[[Any], Any]
    schema: Mapping[str, Any] = attrs.field(factory=dict, eq=False)
    unchanged: frozenset[type] = frozenset()


def accepting(
    expected: str,
    accepts: Callable[[Any], bool],
    convert: Callable[[Any], Any] | None = None,
    *,
    schema: Mapping[str, Any],
    unchanged: frozenset[type] = frozenset(),
) -> ValueType:
    """Return the type of all values for which ``accepts`` is true. `ValueType` explains the other arguments."""

    def checked(value: Any) -> Any:
        if not accepts(value):
            raise InvalidValueError.of(value, expected)
        return convert(value) if convert else value

    return ValueType(expected, checked, schema, unchanged)


def matching(expected: str, pattern: str) -> ValueType:
    """Return the type of all strings that match a regular expression completely."""
    return accepting(
        expected,
        lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None,
        schema={"type": "string", "pattern": f"^(?:{pattern})$"},
    )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    """Check whether a value is finite as a float. Neither NaN nor an integer of 400 digits is."""
    most = sys.float_info.max
    return (_is_integer(value) or isinstance(value, float)) and -most <= value <= most


def _positive_int(value: Any) -> int:
    if not _is_integer(value) or value < 1:
        raise InvalidValueError.of(value, "a positive integer")
    if value > LARGEST:
        raise InvalidValueError.of(value, f"an integer of at most {LARGEST}")
    return int(value)


def _duration(value: Any) -> int:
    """Return a duration in seconds: ``"1h"``, ``"30m"``, ``"90s"``, ``"1h30m"``, or a number of seconds."""
    total = value if _is_integer(value) else 0
    if isinstance(value, str) and (found := _DURATION.fullmatch(value.replace(" ", ""))):
        hours, minutes, seconds = (int(part or 0) for part in found.groups())
        total = 3600 * hours + 60 * minutes + seconds
    if total <= 0:
        raise InvalidValueError.of(value, DURATION)
    if total > LONGEST_S:
        raise InvalidValueError.of(value, "at most one year, 8760h")
    return int(total)


BUILT_IN: Mapping[Any, ValueType] = {
    int: accepting("an integer", _is_integer, schema={"type": "integer"}, unchanged=frozenset({int})),
    float: accepting("a finite number", _is_number, float, schema={"type": "number"}),
    bool: accepting(
        "true or false",
        lambda value: isinstance(value, bool),
        schema={"type": "boolean"},
        unchanged=frozenset({bool}),
    ),
    str: accepting(
        "a string", lambda value: isinstance(value, str), schema={"type": "string"}, unchanged=frozenset({str})
    ),
}
"""The built-in types. Nothing is converted: "2" is not an integer."""

PositiveInt = Annotated[
    int,
    ValueType("a positive integer", _positive_int, schema={"type": "integer", "minimum": 1, "maximum": LARGEST}),
]
"""An integer from 1 to LARGEST."""

NonNegativeInt = Annotated[
    int,
    accepting(
        "an integer of at least 0",
        lambda value: _is_integer(value) and value >= 0,
        schema={"type": "integer", "minimum": 0},
    ),
]
"""An integer of at least 0."""


def number_type(expected: str, accepts: Callable[[float], bool], **bounds: float) -> ValueType:
    """Return the type of the finite numbers for which ``accepts`` is true. ``bounds`` are those of its JSON Schema."""
    schema = {"type": "number", **bounds}
    return accepting(expected, lambda value: _is_number(value) and accepts(value), float, schema=schema)


PositiveFloat = Annotated[float, number_type("a positive number", lambda value: value > 0, exclusiveMinimum=0)]
"""A finite number above 0."""

NonNegativeFloat = Annotated[float, number_type("a number of at least 0", lambda value: value >= 0, minimum=0)]
"""A finite number of at least 0."""

PEAK_FLOPS = (1e6, 1e18)
"""The least and the largest peak in FLOP/s: a share of a slow CPU, and a hundred times that of any GPU."""


def _peak_flops(value: Any) -> float:
    """Return a peak in FLOP/s. The error of a value in TFLOP/s names the value in FLOP/s."""
    if not _is_number(value):
        raise InvalidValueError.of(value, "a peak in FLOP/s, such as 989e12")
    if problem := peak_problem(value):
        raise InvalidValueError(Fault(message=problem))
    return float(value)


def peak_problem(value: float) -> str:
    """Return why a peak in FLOP/s is impossible, or ""."""
    if PEAK_FLOPS[0] <= value <= PEAK_FLOPS[1]:
        return ""
    in_tera = PEAK_FLOPS[0] <= value * 1e12 <= PEAK_FLOPS[1]
    advice = f"write {value:g}e12 for {value:g} TFLOP/s" if in_tera else "the range is {:g} to {:g}".format(*PEAK_FLOPS)
    return f"{value:g} FLOP/s is out of range; {advice}"


PeakFlops = Annotated[
    float,
    ValueType(
        "a peak in FLOP/s",
        _peak_flops,
        schema={"type": "number", "minimum": PEAK_FLOPS[0], "maximum": PEAK_FLOPS[1]},
    ),
]
"""The dense peak of one GPU in FLOP/s."""

_FRACTION = "a number above 0 and below 1, such as 0.05"
Fraction = Annotated[float, number_type(_FRACTION, lambda value: 0 < value < 1, exclusiveMinimum=0, exclusiveMaximum=1)]
"""A number above 0 and below 1."""

_DURATION_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": LONGEST_S},
        {"type": "string", "pattern": "^( *[0-9]+ *[hms])+ *$"},
    ]
}

Duration = Annotated[int, ValueType(DURATION, _duration, schema=_DURATION_SCHEMA)]
"""Seconds, of at most LONGEST_S; in TOML also a string such as "1h30m"."""

NonEmptyStr = Annotated[
    str,
    accepting(
        "a non-empty string",
        lambda value: isinstance(value, str) and bool(value.strip()),
        schema={"type": "string", "pattern": r"\S"},
    ),
]
"""A string that is not blank."""


def is_path(value: Any) -> bool:
    """Check whether a value is an absolute path without line breaks or other invisible characters."""
    return isinstance(value, str) and value.startswith("/") and value.isprintable()


AbsolutePath = Annotated[str, accepting("an absolute path", is_path, schema={"type": "string", "pattern": "^/"})]
"""An absolute path on the target."""


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and re.fullmatch(r"[^-\s]\S*", value) is not None


_WORD_SCHEMA = {"type": "string", "pattern": r"^[^-\s]\S*$"}

Word = Annotated[str, accepting("a word without blanks that does not begin with -", _is_word, schema=_WORD_SCHEMA)]
"""A word that no command takes for an option."""

Url = Annotated[str, matching("a URL or path that does not begin with -", r"[^-\s][^\n\r]*")]
"""The address of a repository, which may contain blanks. No command takes it for an option."""

ImageAddress = Annotated[
    str,
    matching(
        'an image such as "registry.example/name:tag", or the absolute path of a squashfs file on the target',
        r"[A-Za-z0-9]([:/]?[A-Za-z0-9_.@-])*|(/[A-Za-z0-9_.@+=~-]+)+",
    ),
]
"""The address of an image in a registry, without a ``#`` after the registry, or the path of an image on the target."""

_HOST = re.compile(
    r"([^-\s@'\"`$;&|<>(){}\\][^\s@'\"`$;&|<>(){}\\]*@)?"
    r"([A-Za-z0-9_][A-Za-z0-9._-]*(:(?P<port>[0-9]{1,5}))?|[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.%a-z]*)"
)
"""A host as ssh takes it, with or without user and port, and without characters that a shell or ssh would interpret."""

_LAST_PORT = 65535
"""TCP has 16 bits for a port (RFC 9293). Port 0 accepts no connections."""

HOST = '"host", "user@host" or "user@host:port" (a port from 1 to 65535), as ssh takes it'
"""The values that `is_host` accepts, for messages."""


def is_host(value: Any) -> bool:
    """Check whether a value is a host as ssh takes it."""
    match = _HOST.fullmatch(value) if isinstance(value, str) and value.isprintable() else None
    return match is not None and 1 <= int(match["port"] or 22) <= _LAST_PORT


HostAddress = Annotated[str, accepting(HOST, is_host, schema={"type": "string", "pattern": r"^[^-\s]\S*$"})]
"""A host as ssh takes it."""

VariableName = Annotated[str, matching("the name of an environment variable", VARIABLE_NAME)]
"""The name of an environment variable."""
