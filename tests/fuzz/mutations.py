"""Random changes of text, bytes, tables and command lines, drawn from one source of random numbers."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202eevil\u2066\x7f"
"""Text that controls a terminal, unless llmb removes it."""

WEIRD: tuple[Any, ...] = (
    *("", " ", "0", "-rf", "--help", "../../x", "/", "a\nb", "$(touch made)", "'", '"', "%s{}", "größe 東京 🙂", EVIL),
    *("x" * 5000, "1h", "last", "h100", "bf16", "local", "slurm", "maxtext/llama2-tiny", "toy/tiny"),
    *(0, 1, -1, 2, 2**31, 2**63, 10**30, 10**400, 0.0, -0.5, 1e308, 5e-324, float("inf"), float("nan"), True, False),
    *([], [[]], [1, "a"], {}, {"a": {"b": 1}}, [{}], [1] * 300),
)
"""Values that are invalid in most places."""

BYTES = (
    b"\0",
    b"\xff\xfe",
    b"\x1b[31m",
    b"\x1b]0;t\x07",
    b"\r",
    b"\n",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xe2\x80\xae",
    b"9" * 400,
)


def mutate_bytes(data: bytes, random: Random) -> bytes:
    """Return data with some parts removed, repeated, moved, replaced or added."""
    for _ in range(random.randint(1, 6)):
        start = random.randint(0, len(data))
        end = min(len(data), start + random.choice((1, 2, 10, 100, 1000)))
        match random.randrange(6):
            case 0:
                data = data[:start] + data[end:]
            case 1:
                data = data[:end] + data[start:]
            case 2:
                data = data[:start] + random.choice(BYTES) + data[start:]
            case 3:
                data = data[:start] + random.randbytes(end - start) + data[end:]
            case 4:
                data = data[end:] + data[:end]
            case _:
                data = data[:start] + str(random.choice(WEIRD)).encode() + data[end:]
    return data


def mutate_table(table: dict[str, Any], random: Random) -> dict[str, Any]:
    """Return a table with some of its values, at any depth, removed, moved or replaced by weird ones."""
    changed = deepcopy(table)
    for _ in range(random.randint(1, 4)):
        below = changed
        while (inner := [each for each in below.values() if isinstance(each, dict) and each]) and random.random() < 0.8:
            below = random.choice(inner)
        key = random.choice([*below, *below, random.choice(("gpus", "x", EVIL, "", "a.b"))])
        if random.random() < 0.2:
            below.pop(key, None)
        elif random.random() < 0.2 and below:
            below[key] = deepcopy(random.choice([*below.values()]))
        else:
            below[key] = deepcopy(random.choice(WEIRD))
    return changed
