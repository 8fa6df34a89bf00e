"""A verdict with its reason, and the step times that it is based on."""

from __future__ import annotations

from rich.text import Text

import llmb
from llmb.cli import output
from llmb.cli.views.metrics import is_mfu_logged
from llmb.cli.views.numbers import describe_steps, format_number, four_digits

STYLES = {"pass": "green", "fail": "red", "undecided": "yellow"}


def print_verdict(verdict: llmb.Verdict | None, reason: str) -> None:
    """Print the verdict and its reason, aligned and as wide as the terminal. Keep lines in a pipe complete."""
    console = output.console()
    word = verdict or "no verdict"
    indent = max(map(len, (*STYLES, word))) + 2
    clean = llmb.printable_line(reason)
    lines = fill_clauses(clean, console.width - indent) if console.is_terminal else [clean]
    for number, line in enumerate(lines):
        begin = (word.ljust(indent), STYLES.get(word, "")) if number == 0 else " " * indent
        console.print(Text.assemble(begin, line), soft_wrap=True)


def fill_clauses(text: str, width: int) -> list[str]:
    """Break a text into lines. A clause after a semicolon stays on one line if it fits."""
    lines = [""]
    for clause in text.split("; "):
        joined = f"{lines[-1]}; {clause}" if lines[-1] else clause
        if len(joined) <= width:
            lines[-1] = joined
        else:
            lines += output.break_prose(clause, width)
    return [line for line in lines if line]


def published_row(metrics: llmb.Metrics | None) -> tuple[str, str]:
    """Return the published step time and its release."""
    baseline = metrics.baseline if metrics else None
    text = f"{four_digits(baseline.step_time_s)} s per step (release {baseline.release})" if baseline else ""
    return "published", text


def window_row(window: llmb.MeasuredWindow | None, origin: str) -> tuple[str, str]:
    """Return the mean step time over the window."""
    if window is None:
        return "measured", ""
    return "measured", f"{four_digits(window.step_time_s)} s, {describe_steps(window.first, window.last)} ({origin})"


def rates_row(metrics: llmb.Metrics | None) -> tuple[str, str]:
    """Return tokens/s, MFU and days to 1T tokens, as far as they are known. Mark an MFU of logged TFLOP/s."""
    if metrics is None:
        return "tokens/s", ""
    basis = " (logged)" if is_mfu_logged(metrics) else ""
    mfu = "" if metrics.mfu is None else f"MFU {100 * metrics.mfu:.2f} %{basis}"
    days = format_number(metrics.days_per_1t_tokens)
    parts = (format_number(metrics.tokens_per_s), mfu, f"days to 1T tokens {days}" if days else "")
    return "tokens/s", "    ".join(filter(None, parts))
