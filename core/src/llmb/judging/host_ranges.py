"""Host names in a short form, such as ``n[001-008]``."""

import re
from collections.abc import Iterable

from llmb.values.types.check_arguments import check_arguments

NUMBERED = re.compile(r"(.*?)(\d+)$")


@check_arguments
def fold_hosts(names: Iterable[str]) -> str:
    """Return host names with consecutive numbers folded into ranges."""
    ranges: list[tuple[str, str, str]] = []  # prefix, first and last number as text
    for name in sorted(set(names), key=_sort_key):
        match = NUMBERED.match(name)
        prefix, number = match.groups() if match else (name, "")
        if ranges and number and _follows(ranges[-1], prefix, number):
            ranges[-1] = (prefix, ranges[-1][1], number)
        else:
            ranges.append((prefix, number, number))
    parts: dict[str, list[str]] = {}
    for prefix, first, last in ranges:
        parts.setdefault(prefix, []).append(first if first == last else f"{first}-{last}")
    return ",".join(_join(prefix, numbers) for prefix, numbers in parts.items())


def _sort_key(name: str) -> tuple[str, int, int, str]:
    match = NUMBERED.match(name)
    return (match[1], len(match[2]), int(match[2]), name) if match else (name, 0, 0, name)


def _follows(previous: tuple[str, str, str], prefix: str, number: str) -> bool:
    before, _, last = previous
    return before == prefix and bool(last) and len(last) == len(number) and int(number) == int(last) + 1


def _join(prefix: str, numbers: list[str]) -> str:
    return f"{prefix}{numbers[0]}" if len(numbers) == 1 and "-" not in numbers[0] else f"{prefix}[{','.join(numbers)}]"
