"""Speed and memory of parsing and diagnosing logs, compared with grep on the same file.

    python benchmarks/parse_speed.py [--mb 300] [--repeats 5]

Parsing is compared with ``grep -c`` for the text of a step line, and diagnosis with ``grep -cFf`` for all signatures.
The CPU time of both sides is measured in turns, and the best of several repeats counts, because other processes slow
down both. The speed of grep depends on the text between the steps by a factor of two. A step takes 7 to 12 us here and
0.03 us in grep, so the ratio depends on the number of steps in a log.

Sparse logs are those of jobs that run the published recipes. Such a log reaches hundreds of megabytes because many
processes write more than steps, for example with NCCL_DEBUG=INFO. The bars against grep are for these logs:

- ``ranks``, MaxText: every process prints each step, with srun's label. 512 processes (the published jobs have 64 to
  2048) with 50 steps print 25,600 step lines in 500 MB, one in 19.5 kB.
- ``bars``, NeMo 1: one process draws the bar three times a step after carriage returns, twice with values. There is a
  step in 50 kB: in 500 MB, 20 times as many as in the longest run of which we have a complete log.
- ``pairs``, Megatron-Bridge: two processes print a line each per step, with a step in 50 kB too.
- ``failed`` and ``incomplete`` are ``ranks`` with and without a failure at the end, of more steps than they contain.

Other real logs are denser:

- ``ranks-2048``: as many processes as the largest published job, so one step line in 4.9 kB.
- ``bars-alone``: six complete logs of jobs on 8 to 64 GPUs have a step in 5 to 11 kB, 8 kB on average.
- ``pairs-alone``: six complete logs of Megatron-LM have an iteration in 0.8 to 36 kB, 5.5 kB in the median.
- ``notebook``, MaxText: the densest complete log of a real run (one process on TPUs) has a step line in 394 bytes.

``dense-maxtext``, ``dense-nemo`` (NeMo 2) and ``dense-pairs`` contain nothing but step lines, which no real log does.
They are also compared with loops of other tools (line_loops.py). The loop of llmb-run has a bar. The others have none,
because they read two values of a step, or the fields of one version: see docs/decisions/0020.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path

import attrs
from figure import Figure, children_cpu_s, show
from line_loops import LOOPS, LineLoop
from made_logs import (
    ABSL,
    BARS_EVERY,
    MANY_PROCESSES_EVERY,
    PAIR,
    PAIRS_EVERY,
    RANKS_2048_EVERY,
    RANKS_EVERY,
    bars,
    dense_maxtext,
    dense_nemo,
    failed,
    notebook,
    pairs,
    ranks,
    step_line,
)

from llmb.analysis.measuring_window import summarise
from llmb.logs.failures.signature_files import known_signatures
from llmb.logs.read_blocks import blocks_of
from llmb.logs.steps.step_series import StepSeries
from llmb.parsing.log_ending import log_status
from llmb.parsing.parse_log import LogReader
from llmb.plugins.registry import PluginRegistry
from llmb_maxtext.log import MaxTextLog

GREP_SPEED = 0.4
GREP_F_TIME = 0.6
FLAT_MB = 8.0  # additional memory for a log that is ten times as long
MB = 1_000_000
GREPPED = {
    "maxtext": "completed step",
    "nemo_launcher": "train_step_timing",
    "megatron_bridge": "elapsed time per iteration",
}


@attrs.frozen
class Log:
    """A made log: its framework, its content, its share of the size, and whether it has a bar against grep."""

    name: str
    framework: str
    make: Callable[[int], Iterator[bytes]]
    share: float = 1.0
    has_bar: bool = False


LOGS = (
    Log("ranks", "maxtext", partial(ranks, every=RANKS_EVERY), has_bar=True),
    Log("bars", "nemo_launcher", partial(bars, every=MANY_PROCESSES_EVERY), has_bar=True),
    Log("pairs", "megatron_bridge", partial(pairs, every=MANY_PROCESSES_EVERY), has_bar=True),
    Log("ranks-2048", "maxtext", partial(ranks, every=RANKS_2048_EVERY)),
    Log("bars-alone", "nemo_launcher", partial(bars, every=BARS_EVERY)),
    Log("pairs-alone", "megatron_bridge", partial(pairs, every=PAIRS_EVERY)),
    Log("notebook", "maxtext", notebook, share=0.1),
    Log("dense-maxtext", "maxtext", dense_maxtext, share=0.1),
    Log("dense-nemo", "nemo_launcher", dense_nemo, share=0.1),
    Log("dense-pairs", "megatron_bridge", partial(pairs, every=PAIR), share=0.1),
)


@cache
def registry() -> PluginRegistry:
    return PluginRegistry()


def write(path: Path, blocks: Iterable[bytes]) -> Path:
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.writelines(blocks)
    return path


def parse(path: Path, framework: str) -> None:
    """Read a log and all its steps."""
    parser, series = registry().framework(framework).parse_log(run=None), StepSeries()
    for block in blocks_of(path):
        series.add(parser.feed(block))
    series.add(parser.close())
    assert log_status(series) != "no_data"
    assert summarise(list(series.steps), "last").complete


def grep(path: Path, *arguments: str) -> None:
    subprocess.run(["grep", "-c", *arguments, path], stdout=subprocess.PIPE, check=False)  # 1 if no line matches


def best_seconds(repeats: int, *works: Callable[[], object]) -> list[float]:
    """Return the best CPU time of each, measured in turns."""
    taken = [[cpu_seconds(work) for work in works] for _ in range(repeats)]
    return [min(times) for times in zip(*taken, strict=True)]


def cpu_seconds(work: Callable[[], object]) -> float:
    begin = _cpu_time_s()
    work()
    return _cpu_time_s() - begin


def _cpu_time_s() -> float:
    """Return the CPU time of this process and of the programs that it started."""
    return time.process_time() + children_cpu_s()


def figures(size_mb: int = 300, repeats: int = 5, *, diagnosed_mb: int = 500) -> Iterator[Figure]:
    """Yield the speed on each log, memory on a log and a tenth of it, and what is read of a log that has grown."""
    with tempfile.TemporaryDirectory(prefix="llmb-parse-speed-") as folder:
        for log in LOGS:
            path = write(Path(folder, f"{log.name}.log"), log.make(int(size_mb * MB * log.share)))
            yield speed(log, path, repeats)
            yield from (speed_of_loop(log, path, loop, repeats) for loop in LOOPS if loop.log == log.name)
            if log.has_bar:
                small = write(Path(folder, "small", path.name), log.make(size_mb * MB // 10))
                yield memory(small, path, log)
            if log.name == "ranks":
                yield reading_again(path)
                write(path, log.make(diagnosed_mb * MB))
                yield diagnosis(path, "incomplete", repeats)
                yield diagnosis(write(path, failed(path.read_bytes())), "failed", repeats)
            path.unlink()


def speed(log: Log, path: Path, repeats: int) -> Figure:
    by_grep, by_us = best_seconds(
        repeats, lambda: grep(path, GREPPED[log.framework]), lambda: parse(path, log.framework)
    )
    size_mb = path.stat().st_size / MB
    return Figure(
        f"parsing {size_mb:.0f} MB of {log.framework}'s log ({log.name}): speed / that of grep -c",
        by_grep / by_us,
        GREP_SPEED if log.has_bar else None,
        at_least=True,
        detail=f"grep {by_grep:.3f} s, llmb {by_us:.3f} s, {size_mb / by_us:,.0f} MB/s",
    )


def speed_of_loop(log: Log, path: Path, loop: LineLoop, repeats: int) -> Figure:
    by_loop, by_us = best_seconds(repeats, lambda: loop.read(path), lambda: parse(path, log.framework))
    size_mb = path.stat().st_size / MB
    return Figure(
        f"parsing nothing but step lines of {log.framework} / a loop over the lines: {loop.description}",
        by_loop / by_us,
        loop.bar,
        at_least=True,
        detail=f"loop {size_mb / by_loop:.0f} MB/s, llmb {size_mb / by_us:.0f} MB/s",
    )


def diagnosis(path: Path, name: str, repeats: int) -> Figure:
    """Return the time to parse and diagnose a log that contains too few steps."""
    signatures = path.with_suffix(".signatures")
    signatures.write_text("\n".join(each.needle.strip() for each in known_signatures()))

    def parse_incomplete() -> None:
        parsed = LogReader(framework="maxtext", registry=registry(), steps_requested=1000).read([path])
        assert (parsed.status, parsed.failure is not None) == ("incomplete", name == "failed")

    by_grep, by_us = best_seconds(repeats, lambda: grep(path, "-Ff", str(signatures)), parse_incomplete)
    return Figure(
        f"parsing and diagnosing a log ({name}) of {path.stat().st_size / MB:.0f} MB / grep -cFf with all signatures",
        by_us / by_grep,
        GREP_F_TIME,
        detail=f"grep {by_grep:.3f} s, llmb {by_us:.3f} s",
    )


def memory(small: Path, large: Path, log: Log) -> Figure:
    low, high = peak_mb(small, log.framework), peak_mb(large, log.framework)
    return Figure(
        f"additional peak memory for ten times as long a log of {log.framework}",
        high - low,
        FLAT_MB,
        "MB",
        detail=f"{low:.1f} MB, {high:.1f} MB",
    )


def peak_mb(path: Path, framework: str) -> float:
    """Return the peak memory of a process that parses this log."""
    code = (
        "import sys, pathlib; sys.path[:0] = sys.argv[3:]; import figure, parse_speed; "  # voice: module name
        "parse_speed.parse(pathlib.Path(sys.argv[1]), sys.argv[2]); print(figure.own_peak_mb())"  # voice: module name
    )
    command = [sys.executable, "-c", code, str(path), framework, str(Path(__file__).parent), *sys.path]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def reading_again(log: Path) -> Figure:
    """Return the bytes that are read of a log that has grown by one step."""
    parser, series, offset = MaxTextLog(), StepSeries(), log.stat().st_size
    for block in blocks_of(log):
        series.add(parser.feed(block))
    added = step_line(random.Random(3), 10**6, ABSL)
    with log.open("ab") as file:
        file.write(added)
    new = list(blocks_of(log, offset))
    for block in new:
        series.add(parser.feed(block))
    assert series.last_step is not None
    assert series.last_step.step == 10**6
    read = sum(map(len, new))
    return Figure("bytes read of a log that has grown / its new bytes", read / len(added), 1.0, detail=f"{read} read")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mb", type=int, default=300, help="size of the logs")
    options.add_argument("--repeats", type=int, default=5)
    asked = options.parse_args()
    return show(figures(asked.mb, asked.repeats))


if __name__ == "__main__":
    sys.exit(main())
