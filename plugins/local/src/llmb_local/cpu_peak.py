"""Measure the peak of this machine's CPU: the best of many matrix products on all cores, kept in a file.

Prints ``peak_flops.fp32=<FLOP/s>``. A product of two n x n matrices is 2 n^3 FLOP. It is measured under the lock of the
machine's jobs, so not beside one; where one runs for long and nothing is kept yet, nothing is printed. A peak that had
to share the cores with other processes is too low: it is kept, said so, and raised by whoever asks next.
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
from typing import NamedTuple

SIZE = 2048
SECONDS = 1.5
PATIENCE_S = 20.0
WAITED = 0.05
"""How long threads may wait for a core, relative to how long they run, in what counts as measured alone."""
ENOUGH = 5
"""Measurements of which the best is believed though none was alone, as where a container's quota holds threads up."""


class Peak(NamedTuple):
    """FLOP/s in single precision, whether no other process shared the cores, and how often it was measured."""

    fp32: float
    alone: bool
    measured: int = 1

    @property
    def final(self) -> bool:
        """Whether it need not be measured again."""
        return self.alone or self.measured >= ENOUGH


def main(folder: Path, lock: Path) -> None:
    """Print the peak, from the file of this CPU where that is final."""
    kept = folder / f"{_cpu_name()}.json"
    peak = _read(kept)
    if (peak is None or not peak.final) and _take(lock, PATIENCE_S if peak is None else 0.0):
        peak = _raised(_read(kept))  # another process may have measured it meanwhile
        with contextlib.suppress(OSError):  # where it cannot be kept it holds for now; the run says why it cannot be
            _keep(peak, kept)
    if peak is None:
        sys.exit("the peak of this CPU is not measured yet, and not beside a running job: there will be no MFU")
    sys.stdout.write(f"peak_flops.fp32={peak.fp32:.6g}\n")
    if not peak.final:
        sys.exit(
            "the peak of this CPU was measured beside other work: MFU may be too high; the next run measures again"
        )


def _raised(known: Peak | None) -> Peak:
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


def _take(lock: Path, patience_s: float) -> bool:
    """Lock the file until this process ends; false where a job holds it for longer."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    before = os.umask(0)  # other users take turns by it as well
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    os.umask(before)
    end = time.monotonic() + patience_s
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
    """The fastest single-precision product within a second and a half, after one to warm up."""
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
        alone = waited_by_now - waited <= WAITED * (ran_by_now - ran)
        best = max(best, Peak(2.0 * SIZE**3 / took_s, alone))
    return best


def _scheduled() -> tuple[int, int]:
    """For how long the threads of this process ran and waited for a core, in ns; zeros where the kernel does not tell.

    The first two numbers of each thread's schedstat (Linux, Documentation/scheduler/sched-stats.rst).
    """
    ran = waited = 0
    for file in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # it has ended
            thread_ran, thread_waited, _ = file.read_text().split()
            ran, waited = ran + int(thread_ran), waited + int(thread_waited)
    return ran, waited


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
