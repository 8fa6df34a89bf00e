"""Fields of [log]: numbers after their keys, in any order: JSON, a printed dict, ``key=value`` or ``key: value``."""

import re
from collections.abc import Mapping

import attrs

from llmb.plugins.declared.line_patterns import CLOCK, NUMBER, SHORTEST_NEEDLE
from llmb.values.errors import Fault, SpecError

WHERE = "where"
"""The key of the text that the line contains. Every other key is the name of a number."""


@attrs.frozen
class FieldPatterns:
    """A table of [log] fields: a pattern for each name, and the text that the line contains."""

    patterns: Mapping[str, re.Pattern[bytes]]
    needle: bytes

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers."""
        return tuple(self.patterns)

    def read(self, line: bytes, *, torn: bool = False) -> dict[str, bytes] | None:
        """Return the text of each number that a line has, or None if it has none.

        A number at the end of a ``torn`` line may lack digits, and is left out.
        """
        if self.needle not in line:
            return None
        matches = {name: pattern.search(line) for name, pattern in self.patterns.items()}
        found = {
            name: match[1] for name, match in matches.items() if match and not (torn and match.end(1) == len(line))
        }
        return found or None


def compile_fields(table: Mapping[str, str], key: str) -> FieldPatterns:
    """Return the compiled fields. Raise SpecError with the errors of the table, at ``key``."""
    where = table.get(WHERE, "")
    errors = []
    if len(where) < SHORTEST_NEEDLE:
        expected = f"a text of {SHORTEST_NEEDLE} characters or more that each such line contains"
        errors.append(Fault(message=f"invalid value {where!r}", key=f"{key}.{WHERE}", expected=expected))
    if not set(table) - {WHERE}:
        errors.append(Fault(message="no number is named", key=key, expected='names with keys, such as loss = "loss"'))
    if errors:
        raise SpecError(*errors)
    patterns = {name: _compile(name, text) for name, text in table.items() if name != WHERE}
    return FieldPatterns(patterns, where.encode())


def _compile(name: str, text: str) -> re.Pattern[bytes]:
    """Compile a key and the number behind it. The key is not a part of a longer one."""
    number = CLOCK if name == "clock" else NUMBER
    between = rb"""["']?+[ \t]{0,9}+[:=][ \t]{0,9}+["']?+"""
    return re.compile(rb"(?<![\w./-])%s%s(%s)(?!\w)" % (re.escape(text.strip().encode()), between, number))
