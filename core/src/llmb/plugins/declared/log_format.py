"""A compiled [log] table."""

import attrs

from llmb.plugins.declared.field_patterns import FieldPatterns, compile_fields
from llmb.plugins.declared.framework_tables import LogTable
from llmb.plugins.declared.line_patterns import LinePattern, compile_line
from llmb.plugins.declared.value_names_and_units import NUMBERS, check_names, check_unit, check_units_of_line
from llmb.values.errors import Fault, collect_errors


@attrs.frozen
class LogFormat:
    """The lines of a log, as text or as fields, and the texts that mark the end or a loss of NaN."""

    table: LogTable
    lines: tuple[LinePattern, ...]
    fields: tuple[FieldPatterns, ...]
    end: tuple[bytes, ...]
    nan: tuple[bytes, ...]

    @property
    def readers(self) -> tuple[LinePattern | FieldPatterns, ...]:
        """The lines and the fields, in order."""
        return (*self.lines, *self.fields)

    @property
    def counts_lines(self) -> bool:
        """True if no line has the number of its step."""
        return not any(name in NUMBERS for reader in self.readers for name in reader.names)

    @property
    def needles(self) -> tuple[bytes, ...]:
        """A text of each line that matters."""
        return tuple(dict.fromkeys((*(reader.needle for reader in self.readers), *self.end, *self.nan)))


def compile_format(table: LogTable) -> tuple[LogFormat | None, list[Fault]]:
    """Return the compiled table, or None and all errors, with their keys."""
    errors: list[Fault] = []
    lines, fields = [], []
    for index, text in enumerate(table.line):
        key = f"log.line[{index}]" if len(table.line) > 1 else "log.line"
        with collect_errors(errors):
            line = compile_line(text, key)
            lines.append(line)
            errors += (*check_names(line.names, key), *check_units_of_line(text, key))
    for index, each in enumerate(table.fields):
        key = f"log.fields[{index}]" if len(table.fields) > 1 else "log.fields"
        with collect_errors(errors):
            compiled = compile_fields(each, key)
            fields.append(compiled)
            errors += check_names(compiled.names, key)
            errors += (error for name, text in each.items() for error in check_unit(name, text, f"{key}.{name}"))
    if not table.line and not table.fields:
        expected = 'a line such as "iter {step}: loss {loss}", or fields'
        errors.append(Fault(message="required key is missing", key="log.line", expected=expected))
    if errors:
        return None, errors
    end, nan = (tuple(text.encode() for text in texts) for texts in (table.end, table.nan))
    return LogFormat(table, tuple(lines), tuple(fields), end, nan), []
