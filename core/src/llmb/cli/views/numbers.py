"""Numbers and durations as they are printed, in tables and in sentences."""

from __future__ import annotations


def format_number(value: float | None, unit: str = "") -> str:
    """Return at most four significant digits, with commas between thousands. Return nothing for None."""
    if value is None:
        return ""
    rounded = f"{value:.4g}"
    text = f"{value:,.0f}" if abs(float(rounded)) >= 10_000 else rounded
    return f"{text} {unit}".strip()


def four_digits(value: float) -> str:
    """Return four significant digits, including zeros at the end, so that times in a column are equally precise."""
    return f"{value:#.4g}".removesuffix(".") if 1e-4 <= value < 1000 else format_number(value)


def describe_steps(first: int, last: int) -> str:
    """Return a text such as ``step 5`` or ``steps 5 to 9``."""
    return f"step {first}" if first == last else f"steps {first} to {last}"


def format_clock(seconds: float) -> str:
    """Return a duration in seconds as ``1:02:03`` or ``2:03``."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def format_age(seconds: float) -> str:
    """Return how long ago something was: ``5 s ago``, ``40 min ago``, ``3 h ago`` or ``2 days ago``."""
    for unit_s, unit, most in ((1, "s", 60), (60, "min", 60), (3600, "h", 48)):
        if (number := int(max(0.0, seconds) / unit_s)) < most:
            return f"{number} {unit} ago"
    return f"{int(seconds / 86400)} days ago"
