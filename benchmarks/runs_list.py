"""The time of `llmb runs` with many records.

python benchmarks/runs_list.py [--records N]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from figure import Figure, show, usual_environment

RECORDS = 100_000
RUN_TOML = """\
[workload]
recipe = "maxtext/llama2-70b"
gpu_type = "h100"
dtype = "bf16"
gpus = {gpus}
[target]
name = "eos"
[provenance]
created = "2026-{month:02}-{day:02}T09:00:00.{number:06}+00:00"
"""
EVENTS = '{"event": "planned"}\n{"event": "ended", "state": "completed", "verdict": "pass"}\n'
RESULT = json.dumps({"verdict": "pass", "reason": "ratio 1.004, between 0.992 and 1.016; the limit is 1.05"})


def figures(records: int = RECORDS) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as home:
        for number in range(records):
            folder = Path(home, "runs", f"{number:06x}-llama2-70b-h100-bf16-64")
            folder.mkdir(parents=True)
            text = RUN_TOML.format(
                gpus=64 << number % 5, month=1 + number % 10, day=1 + number % 28, number=number % 1_000_000
            )
            (folder / "run.toml").write_text(text)
            (folder / "events.jsonl").write_text(EVENTS)
            (folder / "result.json").write_text(RESULT)
        indexing = timed(home)
        listing = min(timed(home) for _ in range(7))
        yield Figure(f"llmb runs, {records:,} records", listing, 0.3, "s", detail=f"the first time {indexing:.0f} s")
        filtered = min(timed(home, "gpus=512..1024", "since=30d") for _ in range(5))
        yield Figure(f"llmb runs gpus=512..1024 since=30d, {records:,} records", filtered, 0.3, "s")
        shutil.rmtree(home)
        os.mkdir(home)


def timed(home: str, *filters: str) -> float:
    """Return the seconds of one `llmb runs`, with its start."""
    command = [str(Path(sys.executable).with_name("llmb")), "runs", *filters]
    started = time.perf_counter()
    subprocess.run(command, env=usual_environment(LLMB_HOME=home), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--records", type=int, default=RECORDS)
    sys.exit(show(figures(options.parse_args().records)))
