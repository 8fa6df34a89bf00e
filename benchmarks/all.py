"""All benchmarks, as one table of values with their limits, and pass or fail.

uv run --group dev python benchmarks/all.py [--quick] [--write]

This needs root and .ci/install-parts, and takes a quarter of an hour on an idle machine. ``--write`` writes the table,
with a description of the machine, to benchmarks/RESULTS.md. ``--quick`` uses small logs and few jobs, so that its
values mean little. If a benchmark fails, the others continue. The exit code is 1 if a line does not pass.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import parse_speed
import planning
import report_speed
import runs_list
import slurm
import startup
import telemetry
from figure import Broken, Figure, print_line

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("RESULTS.md")
HEADINGS = ("what", "value", "limit", "", "detail")

Line = Figure | Broken


def default_tests() -> Iterator[Figure]:
    """Run the default tests in this environment."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "pytest", "--quiet"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    yield Figure("the default tests", time.perf_counter() - started, 180, "s")


BENCHMARKS: Mapping[str, Callable[[], Iterable[Figure]]] = {
    "startup.py": startup.figures,
    "parse_speed.py": parse_speed.figures,
    "planning.py": planning.figures,
    "runs_list.py": runs_list.figures,
    "report_speed.py": report_speed.figures,
    "telemetry.py": telemetry.figures,
    "slurm.py": slurm.figures,
    "pytest": default_tests,
}
QUICK: Mapping[str, Callable[[], Iterable[Figure]]] = {
    "startup.py": lambda: startup.figures(run=False),
    "parse_speed.py": lambda: parse_speed.figures(20, 1, diagnosed_mb=20),
    "planning.py": lambda: planning.figures(20),
    "runs_list.py": lambda: runs_list.figures(1000),
    "report_speed.py": lambda: report_speed.figures(5),
    "telemetry.py": lambda: telemetry.figures(100),
    "slurm.py": lambda: slurm.figures(20),
}


def measure(benchmarks: Mapping[str, Callable[[], Iterable[Figure]]]) -> Iterator[Line]:
    """Yield each value as soon as it is measured, and a line for each benchmark that fails."""
    for name, figures in benchmarks.items():
        try:
            yield from figures()
        except (Exception, SystemExit) as error:  # noqa: BLE001  # the other benchmarks continue
            yield Broken(name, f"{type(error).__name__}: {error}".splitlines()[0])


def machine() -> dict[str, str]:
    """Describe the machine, without its host name."""
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    kernel = ".".join(platform.release().split(".")[:2])
    return {
        "CPU": _model_of_cpu(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB",
        "OS": f"{system}, Linux {kernel}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "Slurm": _version("slurmctld", "-V"),
        "grep": _version("grep", "--version"),
        "OpenSSH": _version("ssh", "-V"),
        "measured": datetime.date.today().isoformat(),
    }


def _model_of_cpu() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def _version(*command: str) -> str:
    try:
        path = f"{os.environ.get('PATH', '')}:/usr/sbin"  # for slurmctld
        done = subprocess.run(["env", f"PATH={path}", *command], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "not installed"
    return (done.stdout + done.stderr).splitlines()[0]


def markdown(lines: Iterable[Line], about: Mapping[str, str]) -> str:
    """Return the page: the table, and the machine."""
    rows = [HEADINGS, tuple("---" for _ in HEADINGS), *(line.cells for line in lines)]
    table = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
    described = "\n".join(f"| {name} | {value} |" for name, value in about.items())
    return (
        "# Benchmarks\n\nWritten by `uv run --group dev python benchmarks/all.py --write`; do not edit.\n"
        "The two values of a ratio are measured in turns, in the same run.\n\n"
        f"{table}\n\n| machine | |\n| --- | --- |\n{described}\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = []
    for line in measure(QUICK if options.quick else BENCHMARKS):
        print_line(line)
        lines.append(line)
    if options.write:
        RESULTS.write_text(markdown(lines, machine()))
    return 0 if all(line.passed for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
