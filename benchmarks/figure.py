"""A measured value and its limit, as a line of a table."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """Measured value in ``unit``. ``bar`` is its upper limit, or its lower limit with ``at_least``, or None.

    ``detail`` lists the values that it was computed from.
    """

    what: str
    value: float
    bar: float | None = None
    unit: str = ""
    at_least: bool = False
    detail: str = ""

    @property
    def passed(self) -> bool:
        if self.bar is None:
            return True
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """Name, value, limit, pass or fail, and detail."""
        bar = "" if self.bar is None else f"{'at least' if self.at_least else 'at most'} {self.bar:g}"
        verdict = "" if self.bar is None else "pass" if self.passed else "FAIL"
        return self.what, f"{self.value:.3g} {self.unit}".strip(), bar, verdict, self.detail


@dataclass(frozen=True)
class Broken:
    """Benchmark that failed before it measured all of its values."""

    what: str
    why: str
    passed: bool = False

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        return self.what, "", "", "FAIL", self.why


def print_line(line: Figure | Broken) -> None:
    what, value, bar, verdict, detail = line.cells
    print(f"{what:<78} {value:>9}  {bar:<13} {verdict:<4}  {detail}".rstrip(), flush=True)


def show(figures: Iterable[Figure]) -> int:
    """Print each value as soon as it is measured. Return the exit code: 1 if a value misses its limit."""
    passed = True
    for figure in figures:
        print_line(figure)
        passed &= figure.passed
    return 0 if passed else 1


def usual_environment(**more: str) -> dict[str, str]:
    """Return the environment of a user, in which Python caches bytecode, with some more variables."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | more


def children_cpu_s() -> float:
    """Return the CPU time of all ended child processes, which depends less on other load than their duration."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def own_peak_mb() -> float:
    """Return the peak memory of this process in MB. getrusage would include the process that forked this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
