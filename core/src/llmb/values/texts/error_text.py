"""The text of errors: values, counts, and the messages that several checks share."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time
from typing import Any

import attrs

from llmb.values.errors import Fault, LlmbError
from llmb.values.texts.nearest_name import nearest_name

UNKNOWN_KEY = "unknown key"
REQUIRED_KEY = "required key is missing"
LONGEST_TEXT = 500
"""Characters of an exception's message in an error of llmb."""

LONGEST_VALUE = 60
"""Characters of a value in a message."""

MAX_ITEMS = LONGEST_VALUE // 3 + 1
"""Items of a list that may be visible: each takes at least three characters, with its comma and blank."""

URL_PASSWORD = re.compile(r"(?<=://)(?P<user>[^\s/:@]*):[^\s/]+(?=@)")
"""The password in ``scheme://user:password@host``. It ends at the last @ before the path."""

NAMED_RUNS = 5
"""The most runs that a message names."""


def unknown_name(message: str, name: str, known: Iterable[str], *, key: str | None = None) -> Fault:
    """Return the error of an unknown name, with the known names and the nearest of them."""
    known = list(known)
    expected = f"one of {', '.join(known)}" if known else None
    return Fault(message=message, key=key, expected=expected, nearest=nearest_name(name, known))


def format_name(name: str) -> str:
    """Return a name for a message: in quotes and escaped if it has invisible characters, as text from a page may."""
    return name if name.isprintable() else repr(name)


def unknown_key(key: str, name: str, known: Iterable[str]) -> Fault:
    """Return the error of an unknown key, with the nearest of the known keys. ``name`` is the last part of ``key``."""
    error = unknown_name(UNKNOWN_KEY, name, known, key=key)
    return error if error.expected else attrs.evolve(error, expected="an empty table")


def counted(number: int, thing: str) -> str:
    """Return a number with its noun: ``1 GPU``, ``8 GPUs``, ``50,000 steps``."""
    return f"{format_count(number)} {thing}" if number == 1 else f"{format_count(number)} {thing}s"


def format_count(number: int) -> str:
    """Return a number of things: ``8``, ``50,000``."""
    return f"{number:,}" if number >= 10_000 else str(number)


def not_divisible(number: int, thing: str, divisor: str) -> str:
    """Return the message of a number that another does not divide: ``80 layers are not divisible by pp = 3``."""
    return f"{counted(number, thing)} {'is' if number == 1 else 'are'} not divisible by {divisor}"


def format_choices(choices: Iterable[object]) -> str:
    """Return ``a``, ``a or b``, or ``one of a, b, c``."""
    words = list(map(str, choices))
    return f"one of {', '.join(words)}" if len(words) > 2 else " or ".join(words)


def first_names(names: Sequence[str], most: int) -> str:
    """Return the first names, at most ``most``, and the number of the others: ``a, b and 3 more``."""
    return f"{', '.join(names[:most])} {count_others(names, most)}".rstrip()


def count_others(names: Sequence[str], most: int) -> str:
    """Return how many names follow those that a message names, ``and 3 more``, or "" without others."""
    return f"and {format_count(len(names) - most)} more" if len(names) > most else ""


def invalid_value(value: Any) -> str:
    """Return the message of an invalid value, with its type if TOML has no such type: ``invalid value 1 (int64)``."""
    is_toml = isinstance(value, bool | int | float | str | list | tuple | Mapping | date | time | None)
    is_described = is_toml or attrs.has(type(value))
    return f"invalid value {format_value(value)}" + ("" if is_described else f" ({type(value).__name__})")


def format_value(value: Any) -> str:
    """Return a value as TOML writes it, for a message: cut to `LONGEST_VALUE`, with a mark. A table is ``{...}``.

    Invisible characters, as text from a page may have, are escaped.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{...}"
    if isinstance(value, list | tuple):
        return _cut(f"[{', '.join(map(format_value, value[:MAX_ITEMS]))}]")
    if isinstance(value, str):
        text = json.dumps(hide_passwords(value)[:LONGEST_VALUE], ensure_ascii=False)  # JSON escapes what TOML does
        return _cut("".join(map(_visible, text)))
    return with_article(type(value).__name__) if attrs.has(type(value)) else _cut(str(value))


def with_article(name: str) -> str:
    """Return the name of a class with its article: ``a Job``, ``an Image``."""
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def _visible(character: str) -> str:
    """Return a character, or its escape sequence in TOML if it is invisible."""
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"


def hide_passwords(text: str) -> str:
    """Return text with the password of each URL replaced by ``***``."""
    return URL_PASSWORD.sub(r"\g<user>:***", text)


def describe_error(error: Exception) -> str:
    """Return an error of llmb as it is printed, and any other exception as `exception_text`."""
    return str(error) if isinstance(error, LlmbError) else exception_text(error)


def exception_text(error: BaseException, *, place: str = "") -> str:
    """Return an exception of other code in one line: its class, its message, ``place`` in that code, and its notes."""
    of_attrs = any(isinstance(each, attrs.Attribute) for each in error.args)  # behind the message of a validator
    try:
        message = " ".join(str(error.args[0] if of_attrs else error).split())
        notes = " ".join(map(str, getattr(error, "__notes__", ())))
    except Exception:  # noqa: BLE001  # the class may be a plugin's own
        message, notes = "its message cannot be read", ""
    texts = (each if len(each) <= LONGEST_TEXT else f"{each[:LONGEST_TEXT]}..." for each in (message, place, notes))
    text = " ".join(" ".join(texts).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
