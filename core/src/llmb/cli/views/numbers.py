"""Numbers and counts as text."""

from __future__ import annotations


def format_number(value: float | None, unit: str = "") -> str:
    """Return at most four significant digits, with commas between thousands. Return nothing for None."""
    if value is None:
        return ""
    text = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"{text} {unit}".strip()


def counted(number: int, noun: str) -> str:
    """Return a count such as ``1 GPU`` or ``8 GPUs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
