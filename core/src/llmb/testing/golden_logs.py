"""Logs of real runs beside the tests, each with the result that the parser must return."""

import os
from pathlib import Path
from typing import Any

import tomli_w

from llmb.parsing.parse_log import LogReader
from llmb.plugins.registry import PluginRegistry
from llmb.values.toml_files import read_toml

UPDATE = "LLMB_UPDATE"
"""The variable with which the tests write the expected results."""

DIGITS = 6
"""Significant digits of an expected number."""


def is_complete(log: Path, framework: str, registry: PluginRegistry) -> bool:
    """Check whether a log is that of a complete run."""
    return LogReader(framework=framework, registry=registry).read([log]).status == "complete"


def result_of(log: Path, framework: str, registry: PluginRegistry) -> dict[str, Any]:
    """Return status, numbers of steps, values of the last step and the mean of the window of a log."""
    parsed = LogReader(framework=framework, registry=registry).read([log])
    found: dict[str, Any] = {"status": parsed.status, "steps": len(parsed.steps), "total": parsed.series.total_steps}
    if parsed.steps:
        last = parsed.steps[-1]
        found |= {
            "first": parsed.steps[0].step,
            "last": last.step,
            "last_time_s": last.time_s,
            "last_loss": last.loss,
            "last_tflops_per_gpu": last.tflops_per_gpu,
            "last_tokens_per_s_per_gpu": last.tokens_per_s_per_gpu,
            "mean_step_time_s": parsed.summary.step_time_s,
        }
    return {key: _rounded(value) for key, value in found.items() if value is not None}


def _rounded(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def check_log(log: Path, framework: str, registry: PluginRegistry) -> str:
    """Return how the result of a log differs from its file, or nothing. `UPDATE` writes the file."""
    found, file = result_of(log, framework, registry), log.with_name(f"{log.stem}.expected.toml")
    if os.environ.get(UPDATE):
        file.write_text(tomli_w.dumps(found))
    if not file.exists():
        return f"{file.name} is missing; run the test with {UPDATE}=1, and compare the file with the log"
    expected = read_toml(file)
    changes = [
        f"{key} is {found.get(key)}, not {expected.get(key)}"
        for key in {**expected, **found}
        if found.get(key) != expected.get(key)
    ]
    return f"the result differs from {file.name}: {'; '.join(changes)}" if changes else ""
