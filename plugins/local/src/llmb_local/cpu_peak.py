"""Measure the peak of this machine's CPU: the best of many matrix products on all cores, kept in a file.

Print ``peak_flops.fp32=<FLOP/s>``. A product of two n x n matrices is 2 n^3 FLOP. The measurement holds the lock of the
machine's jobs, so that no job runs at the same time. If a job runs for long and no peak is kept yet, print nothing. A
peak that was measured while other processes used the cores is too low: it is kept, marked, and measured again by later
calls.
"""

import contextlib
import fcntl
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import NamedTuple

PEAKS_FOLDER = '"$HOME/.cache/llmb-cpu-peak"'
"""The folder of measured peaks, for bash. The probe comes before the check that the work directory is safe to write."""

SIZE = 2048
SECONDS = 1.5
LOCK_TIMEOUT_S = 20.0
MAX_WAIT_SHARE = 0.05
"""If threads wait for a core longer than this share of their run time, other processes use the cores too."""
MAX_MEASUREMENTS = 5
"""After so many measurements the best one is final, even if other load (or a container's CPU quota) disturbed all."""


class Peak(NamedTuple):
    """FLOP/s in single precision, whether no other process used the cores, and the number of measurements."""

    fp32: float
    alone: bool
    measured: int = 1

    @property
    def final(self) -> bool:
        """True if the peak need not be measured again."""
        return self.alone or self.measured >= MAX_MEASUREMENTS


def main(folder: Path, lock: Path) -> None:
    """Print the peak of this CPU, measured now unless the kept one is final.

    Exit with a message if there is no peak, or if it is not final.
    """
    kept = folder / f"{_cpu_name()}.json"
    peak = _read(kept)
    if (peak is None or not peak.final) and _take(lock, LOCK_TIMEOUT_S if peak is None else 0.0):
        peak = _improved(_read(kept))  # another process may have measured it meanwhile
        with contextlib.suppress(OSError):  # this run can use it; if the disk is full, the run itself reports that
            _keep(peak, kept)
    if peak is None:
        sys.exit("the CPU peak cannot be measured while a job is running, so there is no MFU")
    sys.stdout.write(f"peak_flops.fp32={peak.fp32:.6g}\n")
    if not peak.final:
        sys.exit("the CPU peak was measured under load, so MFU may be too high; the next run measures it again")


def _improved(known: Peak | None) -> Peak:
    """Return the known peak if it is final, else the better of it and a new measurement."""
    if known is None:
        return measure()
    if known.final:
        return known
    fp32, alone, _ = measure()
    return Peak(max(fp32, known.fp32), alone, known.measured + 1)


def _read(kept: Path) -> Peak | None:
    try:
        found = json.loads(kept.read_text())
        return Peak(float(found["fp32"]), found.get("alone") is True, int(found.get("measured", 1)))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(peak: Peak, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(peak._asdict()))
    partial.replace(kept)


def _take(lock: Path, timeout_s: float) -> bool:
    """Lock the file until this process ends. Return False if a job still holds it after ``timeout_s``.

    Exit with a message if the file cannot be opened.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        before = os.umask(0)  # other users take the same lock
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        finally:
            os.umask(before)
    except OSError as error:
        sys.exit(f"the CPU peak is not measured, because the lock {lock} cannot be opened: {error.strerror}")
    end = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        else:
            return True


def measure() -> Peak:
    """Return the fastest single-precision product of `SECONDS`, after one product to warm up."""
    import numpy as np

    left = np.random.default_rng(0).random((SIZE, SIZE), dtype=np.float32)
    right = left.T.copy()
    product = left @ right
    best = Peak(0.0, alone=False)
    end = time.perf_counter() + SECONDS
    while not best.fp32 or time.perf_counter() < end:
        (ran, waited), started = _scheduled(), time.perf_counter()
        np.matmul(left, right, out=product)
        took_s = time.perf_counter() - started
        ran_by_now, waited_by_now = _scheduled()
        alone = waited_by_now - waited <= MAX_WAIT_SHARE * (ran_by_now - ran)
        best = max(best, Peak(2.0 * SIZE**3 / took_s, alone))
    return best


def _scheduled() -> tuple[int, int]:
    """Return how long the threads of this process ran, and waited for a core, in ns. Return zeros if unknown.

    These are the first two numbers of each thread's schedstat (Linux, Documentation/scheduler/sched-stats.rst).
    """
    ran = waited = 0
    for file in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # the thread has ended
            thread_ran, thread_waited, _ = file.read_text().split()
            ran, waited = ran + int(thread_ran), waited + int(thread_waited)
    return ran, waited


def _cpu_name() -> str:
    """Return a name for this host, its CPU and the cores that this process may use: a peak is valid only for them."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):  # /proc is not mounted: the architecture must do
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2] for line in lines if line.startswith("model name")), model)
    name = "-".join(f"{platform.node()} {model}".split())
    cores = len(os.sched_getaffinity(0))
    return "".join(each if each.isalnum() or each in "-." else "-" for each in f"{name}-{cores}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
