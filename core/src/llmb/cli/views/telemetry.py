"""The telemetry of a run as rows of text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import llmb
from llmb.cli.views.numbers import counted, format_number

NAMED_PROBLEMS = 8
"""Lines of problems that are shown. ``--json`` has all."""


def telemetry_rows(telemetry: llmb.Telemetry) -> list[tuple[str, str]]:
    """Return a row of power and energy, and a row for each node and problem."""
    values = (
        (telemetry.power_w, "W per GPU", 1.0),
        (telemetry.energy_per_step_j, "kJ per step", 1e-3),
        (telemetry.tokens_per_joule, "tokens/J", 1.0),
        (telemetry.kwh_per_1t_tokens, "kWh for 1T tokens", 1.0),
    )
    text = ", ".join(format_number(value * scale, unit) for value, unit, scale in values if value is not None)
    rows = [("energy", text)] if text else []
    lines = list(_describe_problems(telemetry))
    rows += [("gpus", line) for line in lines[:NAMED_PROBLEMS]]
    if hidden := len(lines) - NAMED_PROBLEMS:
        rows += [("gpus", f"{counted(hidden, 'more problem')}; see --json")] if hidden > 0 else []
    return rows


def _describe_problems(telemetry: llmb.Telemetry) -> Iterator[str]:
    """Yield a text such as ``n3 GPU 4 slow: SM clock 1410 MHz, median 1755 MHz`` for each node and problem."""
    ordered = sorted(telemetry.problems, key=lambda each: (each.node, each.problem))
    for (node, problem), found in itertools.groupby(ordered, key=lambda each: (each.node, each.problem)):
        each = list(found)
        numbers = ", ".join(str(index) for index in sorted({one.gpu for one in each}))
        plural = "GPUs" if "," in numbers else "GPU"
        yield f"{node} {plural} {numbers} {problem}: {each[0].detail}"
