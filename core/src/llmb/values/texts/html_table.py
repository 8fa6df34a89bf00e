"""Small HTML tables for notebooks, with all text escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from llmb.values.texts.printable import printable_line


def html_values(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Return a table of named values, without those that are None or empty."""
    return html_table(title, (), [(name, text) for name, value in rows if (text := _text(value))])


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a title above it."""
    heading = "".join(f"<th>{_escaped(column)}</th>" for column in columns)
    head = f"<thead><tr>{heading}</tr></thead>" if columns else ""
    body = "".join(f"<tr>{''.join(f'<td>{_escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{_escaped(title)}</caption>{head}<tbody>{body}</tbody></table>"


def _escaped(value: object) -> str:
    return escape(printable_line(_text(value)))


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return str(value)
