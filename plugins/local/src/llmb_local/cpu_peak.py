"""Measure the peak of this machine's CPU: the best of many matrix products on all cores, kept in a file.

Prints ``peak_flops.fp32=<FLOP/s>``. A product of two n x n matrices is 2 n^3 FLOP.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from pathlib import Path

SIZE = 2048
SECONDS = 1.5


def main(folder: Path) -> None:
    """Print the peak, from the file of this CPU where there is one."""
    kept = folder / f"{_cpu_name()}.json"
    try:
        peak = float(json.loads(kept.read_text())["fp32"])
    except (OSError, ValueError, KeyError):
        peak = measure()
        folder.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps({"fp32": peak}))
        partial.replace(kept)
    sys.stdout.write(f"peak_flops.fp32={peak:.6g}\n")


def measure() -> float:
    """FLOP/s of the fastest single-precision product within a second and a half, after one to warm up."""
    import numpy as np

    left = np.random.default_rng(0).random((SIZE, SIZE), dtype=np.float32)
    right = left.T.copy()
    product = left @ right
    best = float("inf")
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        started = time.perf_counter()
        np.matmul(left, right, out=product)
        best = min(best, time.perf_counter() - started)
    return 2.0 * SIZE**3 / best


def _cpu_name() -> str:
    """What the figure holds for: this host's CPU and the cores that this process may use."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2] for line in lines if line.startswith("model name")), model)
    except OSError:
        pass  # not Linux: the architecture has to do
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    name = "-".join(f"{platform.node()} {model}".split())
    return "".join(each if each.isalnum() or each in "-." else "-" for each in f"{name}-{cores}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
