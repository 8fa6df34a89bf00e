"""How fast a log is parsed, beside ``grep -c`` on the same file, and in how much memory.

    python benchmarks/parse_speed.py [--mb 500] [--repeats 5]

What is timed ends with what ``llmb parse`` says of a log: its steps' numbers, their count, whether a loss was NaN, the
figures of the window. The figures of steps that nobody asks for are not read; how long it takes to have all is told
beside it. The best of several repeats counts, taken in turns, so that a busy machine hurts both.

How fast grep is depends on the text between the steps, by a factor of two; and a step costs us some 2 us where it costs
grep 0.03, so the ratio hangs on how many there are. A log grows to 500 MB by what many processes say besides, with
NCCL_DEBUG=INFO for instance, and a recipe has 50 to 100 steps. The bar is for logs of such jobs:

- ``ranks``, MaxText: every process prints each step. 512 processes (the middle of the published 64 to 2048) with 50
  steps print 25,600 step lines: in 500 MB, one in 19.5 kB. Each begins with srun's label.
- ``bars``, NeMo 1: one process draws the bar, three times a step behind carriage returns, twice with figures. There is
  a step in 50 kB: 10,000 of them, twenty times as many as the longest run of which we have a whole log.
- ``pairs``, Megatron-Bridge: two processes print a line each for a step, one step in 50 kB too.

Without a bar stand logs that have more steps, and say less besides:

- ``ranks-2048``: as many processes as the largest published job has, so one step line in 4.9 kB.
- ``bars-alone``: six whole logs of jobs on 8 to 64 GPUs have one step in 5 to 11 kB, 8 kB in the mean. Such a log of
  500 MB is of 62,000 steps.
- ``pairs-alone``: six whole logs of Megatron-LM have one iteration in 0.8 to 36 kB, in the median 5.5 kB.
- ``notebook``, MaxText: the densest whole log of a real run (one process on TPUs, 500 steps) has a step line in each
  394 bytes: in 500 MB more than a million steps of one run, each of which grep passes in less time than Python calls.
- ``dense`` has nothing but the step lines of eight ranks, which no log has.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import attrs
from figure import Figure, show
from made_logs import (
    ABSL,
    BARS_EVERY,
    MANY_PROCESSES_EVERY,
    PAIRS_EVERY,
    RANKS_2048_EVERY,
    RANKS_EVERY,
    bars,
    dense,
    notebook,
    pairs,
    ranks,
    step_line,
)

from llmb.analysis.window import summarise
from llmb.logs.files import feed_file
from llmb.logs.series import StepSeries
from llmb.logs.status import log_status
from llmb.values.steps import LogParser
from llmb_maxtext.log import MaxTextLog
from llmb_megatron_bridge.log import MegatronLog
from llmb_nemo_launcher.log import NeMoLog

BAR = 0.5  # of grep's speed
FLAT_MB = 8.0  # how much more memory ten times the log may take
MB = 1_000_000
PARSERS: dict[str, Callable[[], LogParser]] = {"MaxText": MaxTextLog, "NeMo": NeMoLog, "Megatron-Bridge": MegatronLog}
GREPPED = {"MaxText": "completed step", "NeMo": "train_step_timing", "Megatron-Bridge": "elapsed time per iteration"}


@attrs.frozen
class Log:
    """A log that is parsed: its framework, how its bytes are made, and whether the bar is for it."""

    name: str
    framework: str
    make: Callable[[int], Iterator[bytes]]
    has_bar: bool = False
    once: bool = False  # it takes long


LOGS = (
    Log("ranks", "MaxText", partial(ranks, every=RANKS_EVERY), has_bar=True),
    Log("bars", "NeMo", partial(bars, every=MANY_PROCESSES_EVERY), has_bar=True),
    Log("pairs", "Megatron-Bridge", partial(pairs, every=MANY_PROCESSES_EVERY), has_bar=True),
    Log("ranks-2048", "MaxText", partial(ranks, every=RANKS_2048_EVERY)),
    Log("bars-alone", "NeMo", partial(bars, every=BARS_EVERY)),
    Log("pairs-alone", "Megatron-Bridge", partial(pairs, every=PAIRS_EVERY)),
    Log("notebook", "MaxText", notebook, once=True),
    Log("dense", "MaxText", dense, once=True),
)


def write(path: Path, blocks: Iterable[bytes]) -> Path:
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.writelines(blocks)
    return path


def parse(path: Path, framework: str) -> StepSeries:
    """As `llmb parse` does it, without what it prints."""
    parser, series = PARSERS[framework](), StepSeries()
    feed_file(parser, path, 0, series.add)
    series.add(parser.close())
    assert log_status(series) != "no_data"
    assert summarise(series.steps, "last").complete
    return series


def grep(path: Path, framework: str) -> int:
    command = ["grep", "-c", GREPPED[framework], path]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def compare(path: Path, framework: str, repeats: int) -> tuple[float, float]:
    """Seconds of grep and of the parser, the best of each."""
    taken = [(seconds(lambda: grep(path, framework)), seconds(lambda: parse(path, framework))) for _ in range(repeats)]
    by_grep, by_us = zip(*taken, strict=True)
    return min(by_grep), min(by_us)


def peak_mb(path: Path, framework: str) -> float:
    """Peak memory of a process of its own that parses this log."""
    code = (
        "import sys, pathlib; sys.path[:0] = sys.argv[3:]; import figure, parse_speed; "
        "parse_speed.parse(pathlib.Path(sys.argv[1]), sys.argv[2]); print(figure.own_peak_mb())"
    )
    command = [sys.executable, "-c", code, str(path), framework, str(Path(__file__).parent), *sys.path]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def read_again(path: Path) -> tuple[int, int]:
    """Bytes that a second call reads of a log that has grown by one step, and the bytes that were added."""
    parser, series, fed = MaxTextLog(), StepSeries(), 0
    offset = feed_file(parser, path, 0, series.add)
    added = step_line(random.Random(3), 10**6, ABSL)
    with path.open("ab") as file:
        file.write(added)
    fed = feed_file(parser, path, offset, series.add) - offset
    assert series.last_step is not None
    assert series.last_step.step == 10**6
    return fed, len(added)


def figures(size_mb: int = 500, repeats: int = 5) -> Iterator[Figure]:
    """Speed on each log, memory on a log and a tenth of it, and what is read of a log that has grown."""
    with tempfile.TemporaryDirectory(prefix="llmb-parse-speed-") as folder:
        for log in LOGS:
            path = write(Path(folder, f"{log.name}.log"), log.make(size_mb * MB))
            yield speed(log, path, size_mb, 1 if log.once else repeats)
            if log.has_bar:
                small = write(Path(folder, "small", path.name), log.make(size_mb * MB // 10))
                yield memory(small, path, log.framework)
            if log.name == "ranks":
                yield reading_again(path)
            path.unlink()


def speed(log: Log, path: Path, size_mb: int, repeats: int) -> Figure:
    by_grep, by_us = compare(path, log.framework, repeats)
    whole = seconds(lambda: list(parse(path, log.framework).steps))
    return Figure(
        f"parsing {size_mb} MB of {log.framework}'s log ({log.name}): speed / that of grep -c",
        by_grep / by_us,
        BAR if log.has_bar else None,
        at_least=True,
        detail=f"grep {by_grep:.3f} s, llmb {by_us:.3f} s, {size_mb / by_us:,.0f} MB/s, "
        f"{grep(path, log.framework):,} lines; with the figures of every step {whole:.3f} s",
    )


def memory(small: Path, large: Path, framework: str) -> Figure:
    low, high = peak_mb(small, framework), peak_mb(large, framework)
    return Figure(
        f"more peak memory for ten times as long a log of {framework}",
        high - low,
        FLAT_MB,
        "MB",
        detail=f"{low:.1f} MB, {high:.1f} MB",
    )


def reading_again(log: Path) -> Figure:
    fed, added = read_again(log)
    return Figure("bytes read of a log that has grown / its new bytes", fed / added, 1.0, detail=f"{added} are new")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mb", type=int, default=500, help="size of the logs")
    options.add_argument("--repeats", type=int, default=5)
    asked = options.parse_args()
    return show(figures(asked.mb, asked.repeats))


if __name__ == "__main__":
    sys.exit(main())
