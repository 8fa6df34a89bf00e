"""Host names in a short form, such as ``n[001-008]``."""

import string
from collections.abc import Iterable

from llmb.values.types.check_arguments import check_arguments


@check_arguments
def fold_hosts(names: Iterable[str]) -> str:
    """Return host names with consecutive numbers folded into ranges."""
    ranges: list[tuple[str, str, str]] = []  # prefix, first and last number as text
    for prefix, _, number in sorted(map(_split, set(names))):
        before, first, last = ranges[-1] if ranges else ("", "", "")
        if number and last and (before, len(last), int(last) + 1) == (prefix, len(number), int(number)):
            ranges[-1] = (prefix, first, number)
        else:
            ranges.append((prefix, number, number))
    parts: dict[tuple[str, bool], list[str]] = {}
    for prefix, first, last in ranges:
        parts.setdefault((prefix, bool(first)), []).append(first if first == last else f"{first}-{last}")
    return ",".join(
        f"{prefix}{numbers[0]}" if len(numbers) == 1 and "-" not in numbers[0] else f"{prefix}[{','.join(numbers)}]"
        for (prefix, _), numbers in parts.items()
    )


def _split(name: str) -> tuple[str, int, str]:
    """Return the name without the number at its end, the digits of the number, and the number."""
    prefix = name.rstrip(string.digits)
    return prefix, len(name) - len(prefix), name.removeprefix(prefix)
