"""The time and the size of the HTML report.

python benchmarks/report_speed.py
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from figure import Figure, show, usual_environment

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from parts.recorded_runs import PUBLISHED_S, record_runs  # the path is set just above

REPEATS = 5


def figures(runs: int = 100) -> Iterator[Figure]:
    noise = random.Random(1)
    with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, LLMB_HOME=home):
        one = record_runs([step_times(noise, 50)])
        many = [run_id for number in range(runs) for run_id in record_configuration(noise, number)]
        yield from measured("HTML report, 1 run", one, 1.5, 120, REPEATS)
        yield from measured(f"HTML report, {runs} configurations x 1,000 steps", many, 10, 2000, 1)


def record_configuration(noise: random.Random, number: int) -> list[str]:
    return record_runs([step_times(noise, 1000)], provenance={"sweep": {"env.N": str(number)}})


def step_times(noise: random.Random, count: int) -> list[float]:
    return [PUBLISHED_S * (1 + noise.gauss(0, 0.01)) for _ in range(count)]


def measured(what: str, run_ids: list[str], bar_s: float, bar_kb: float, repeats: int) -> Iterator[Figure]:
    """Yield the best time of some reports, with the start of llmb, and the size of the file."""
    file = Path(os.environ["LLMB_HOME"], "report.html")
    command = [str(Path(sys.executable).with_name("llmb")), "report", *run_ids, "-o", str(file)]
    times_s = []
    for _ in range(repeats):
        started = time.perf_counter()
        subprocess.run(command, env=usual_environment(), check=True, stderr=subprocess.DEVNULL)
        times_s.append(time.perf_counter() - started)
    yield Figure(what, min(times_s), bar_s, "s")
    yield Figure(f"{what}: its size", file.stat().st_size / 1000, bar_kb, "KB")


if __name__ == "__main__":
    sys.exit(show(figures()))
