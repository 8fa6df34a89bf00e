"""Loops over the lines of a log as other tools have them, which parse_speed.py compares with parsing.

Each loop returns what it reads. Most read one or two values of a step, and none checks whether a value is torn, whether
a step is printed again, or which run it belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import attrs

_NUMBER = r"(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
_THREE_PATTERNS = (
    re.compile(rf"{_NUMBER} *(?:MODEL_)?TFLOP/s/GPU"),
    re.compile(r"iteration +(\d+) */ *(\d+)"),
    re.compile(rf"elapsed time per iteration \(ms\): *{_NUMBER}"),
)
_TIME_AND_RATE = re.compile(
    rf"Step Time\s*:\s*{_NUMBER}\s*s.*?GPU utilization:\s*{_NUMBER}\s*(?:MODEL_)?TFLOP/s/GPU", re.IGNORECASE
)
_ALL_OF_MAXTEXT = re.compile(
    rf"completed step: (\d+), seconds: {_NUMBER}, TFLOP/s/device: {_NUMBER}, Tokens/s/device: {_NUMBER}, "
    rf"total_weights: {_NUMBER}, loss: {_NUMBER}"
)
_TIME, _STEP = "train_step_timing in s:", "global_step:"


def three_patterns(path: Path) -> list[list[str]]:
    """Search each line of Megatron-Bridge for three values, as llmb-run does."""
    with path.open(errors="replace") as file:
        return [[match[1] for pattern in _THREE_PATTERNS if (match := pattern.search(line))] for line in file]


def time_and_rate(path: Path) -> list[tuple[float, float]]:
    """Search each line of Megatron-Bridge for a step time and TFLOP/s, as CloudAI does (extract_mbridge_metrics)."""
    lines = path.read_text(errors="ignore").splitlines()
    return [(float(match[1]), float(match[2])) for line in lines if (match := _TIME_AND_RATE.search(line))]


def time_and_step(path: Path) -> list[tuple[float, int]]:
    """Cut the time and the number out of each line of NeMo 2, as CloudAI does (extract_timings of its NeMoRun)."""
    with path.open(errors="ignore") as file:
        return [
            (float(line.split(_TIME)[1].strip().split()[0]), int(line.split(_STEP)[1].split("|")[0].strip()))
            for line in file
            if _TIME in line and _STEP in line
        ]


def all_of_one_version(path: Path) -> list[list[float]]:
    """Read all values of each line of MaxText, for the fields of one version in their order."""
    with path.open(errors="ignore") as file:
        return [[*map(float, match.groups())] for line in file if (match := _ALL_OF_MAXTEXT.search(line))]


@attrs.frozen
class LineLoop:
    """A loop: the log that it reads, its description, and the least ratio of the speed of parsing to its speed."""

    log: str
    description: str
    read: Callable[[Path], object]
    bar: float | None = None


LOOPS = (
    LineLoop("dense-maxtext", "all values by a regular expression for one version", all_of_one_version),
    LineLoop("dense-nemo", "time and step number (CloudAI)", time_and_step),
    LineLoop("dense-pairs", "three regular expressions (llmb-run)", three_patterns, bar=1.0),
    LineLoop("dense-pairs", "step time and TFLOP/s (CloudAI)", time_and_rate),
)
