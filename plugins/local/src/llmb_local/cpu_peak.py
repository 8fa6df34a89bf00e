"""Measure the peak of this machine's CPU: the best of many matrix products on all cores, kept in a file.

Prints ``peak_flops.fp32=<FLOP/s>``. A product of two n x n matrices is 2 n^3 FLOP. It is measured under the lock of the
machine's jobs, so not beside one; where one runs for long and nothing is kept yet, nothing is printed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import sys
import time
from pathlib import Path

SIZE = 2048
SECONDS = 1.5
PATIENCE_S = 20.0


def main(folder: Path, lock: Path) -> None:
    """Print the peak, from the file of this CPU where there is one."""
    kept = folder / f"{_cpu_name()}.json"
    peak = _read(kept)
    if peak is None and _take(lock):
        peak = _read(kept) or measure()  # another process may have measured it meanwhile
        with contextlib.suppress(OSError):  # where it cannot be kept it holds for now; the run says why it cannot be
            _keep(peak, kept)
    if peak is None:
        sys.exit("the peak of this CPU is not measured yet, and not beside a running job: there will be no MFU")
    else:
        sys.stdout.write(f"peak_flops.fp32={peak:.6g}\n")


def _read(kept: Path) -> float | None:
    try:
        return float(json.loads(kept.read_text())["fp32"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(peak: float, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps({"fp32": peak}))
    partial.replace(kept)


def _take(lock: Path) -> bool:
    """Lock the file until this process ends; false where a job holds it for longer than `PATIENCE_S`."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    before = os.umask(0)  # other users take turns by it as well
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    os.umask(before)
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        else:
            return True


def measure() -> float:
    """FLOP/s of the fastest single-precision product within a second and a half, after one to warm up."""
    import numpy as np

    left = np.random.default_rng(0).random((SIZE, SIZE), dtype=np.float32)
    right = left.T.copy()
    product = left @ right
    best = float("inf")
    end = time.perf_counter() + SECONDS
    while best == float("inf") or time.perf_counter() < end:
        started = time.perf_counter()
        np.matmul(left, right, out=product)
        best = min(best, time.perf_counter() - started)
    return 2.0 * SIZE**3 / best


def _cpu_name() -> str:
    """What the figure holds for: this host's CPU and the cores that this process may use."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):  # not Linux: the architecture has to do
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2] for line in lines if line.startswith("model name")), model)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    name = "-".join(f"{platform.node()} {model}".split())
    return "".join(each if each.isalnum() or each in "-." else "-" for each in f"{name}-{cores}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
