"""How fast a log is parsed, beside ``grep -c`` on the same file, and in how much memory.

    python benchmarks/parse_speed.py [--mb 500] [--repeats 5]

What is timed ends with what ``llmb parse`` says of a log: its steps' numbers, their count, whether a loss was NaN, the
figures of the window. The figures of steps that nobody asks for are not read; how long it takes to have all is told
beside it. The best of several repeats counts, taken in turns, so that a busy machine hurts both.

How fast grep is depends on the text between the steps, by a factor of two; and a step costs us some 2 us where it costs
grep 0.03, so the ratio hangs on how many there are. They are as dense as in real logs, which were measured:

- ``ranks``, MaxText: every process prints each step, so a job of the largest published size (2048) with a recipe's 50
  steps has 102,400 step lines; in 500 MB that is one in 4.9 kB. Each begins with srun's label.
- ``bars``, NeMo 1: six whole logs of jobs on 8 to 64 GPUs have one step in 5 to 11 kB, 8 kB in the mean; each is drawn
  three times behind carriage returns, twice with figures. Runs are as long as the longest of them all, 500 steps.
- ``pairs``, Megatron-Bridge: six whole logs of Megatron-LM have one iteration in 0.8 to 36 kB, in the median 5.5 kB.
  Here each has two lines, of two ranks; runs are of 500 steps, as the longest of these.
- ``notebook``, MaxText: the densest whole log of a real run (one process on TPUs, 500 steps) has a step line in each
  394 bytes: in 500 MB more than a million steps of one run, each of which grep passes in less time than Python calls.
- ``noisy-...`` are the same with one step in 50 kB: many ranks of which few print steps, with NCCL_DEBUG=INFO.
- ``dense`` has nothing but the step lines of eight ranks, which no log has; so it has no bar.
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

from figure import Figure, show
from made_logs import ABSL, NOISY_EVERY, bars, dense, notebook, pairs, ranks, step_line

from llmb.figures.window import summarise
from llmb.logs.reading import feed_file
from llmb.logs.series import StepSeries
from llmb.logs.status import log_status
from llmb.values.steps import LogParser
from llmb_maxtext.log import MaxTextLog
from llmb_megatron_bridge.log import MegatronLog
from llmb_nemo_launcher.log import NeMoLog

BAR = 0.5  # of grep's speed
FLAT_MB = 8.0  # how much more memory ten times the log may take
MB = 1_000_000
PARSERS: dict[str, Callable[[], LogParser]] = {"bars": NeMoLog, "pairs": MegatronLog}
GREPPED = {"bars": "train_step_timing", "pairs": "elapsed time per iteration"}
LOGS = {
    "ranks": (ranks, "MaxText"),
    "bars": (bars, "NeMo"),
    "pairs": (pairs, "Megatron-Bridge"),
    "noisy-ranks": (partial(ranks, every=NOISY_EVERY), "MaxText"),
    "noisy-bars": (partial(bars, every=NOISY_EVERY), "NeMo"),
    "noisy-pairs": (partial(pairs, every=NOISY_EVERY), "Megatron-Bridge"),
    "notebook": (notebook, "MaxText"),
    "dense": (dense, "MaxText"),
}
LIKE_JOBS = ("ranks", "bars", "pairs")
ONCE = ("notebook", "dense")  # they take long


def write(path: Path, blocks: Iterable[bytes]) -> Path:
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.writelines(blocks)
    return path


def parse(path: Path) -> StepSeries:
    """As `llmb parse` does it, without what it prints."""
    parser, series = PARSERS.get(path.stem.removeprefix("noisy-"), MaxTextLog)(), StepSeries()
    feed_file(parser, path, 0, series.add)
    series.add(parser.close())
    assert log_status(series) != "no_data"
    assert summarise(series.steps, "last").complete
    return series


def grep(path: Path) -> int:
    wanted = GREPPED.get(path.stem.removeprefix("noisy-"), "completed step")
    return int(subprocess.run(["grep", "-c", wanted, path], stdout=subprocess.PIPE, check=True).stdout)


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def compare(path: Path, repeats: int) -> tuple[float, float]:
    """Seconds of grep and of the parser, the best of each."""
    pairs = [(seconds(lambda: grep(path)), seconds(lambda: parse(path))) for _ in range(repeats)]
    by_grep, by_us = zip(*pairs, strict=True)
    return min(by_grep), min(by_us)


def peak_mb(path: Path) -> float:
    """Peak memory of a process of its own that parses this log."""
    code = (
        "import sys, pathlib; sys.path[:0] = sys.argv[2:]; import figure, parse_speed; "
        "parse_speed.parse(pathlib.Path(sys.argv[1])); print(figure.own_peak_mb())"
    )
    command = [sys.executable, "-c", code, str(path), str(Path(__file__).parent), *sys.path]
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
        for name, (make, framework) in LOGS.items():
            log = write(Path(folder, f"{name}.log"), make(size_mb * MB))
            yield speed(log, framework, size_mb, 1 if name in ONCE else repeats)
            if name in LIKE_JOBS:
                yield memory(log, write(Path(folder, "small", log.name), make(size_mb * MB // 10)), framework)
            if name == "ranks":
                yield reading_again(log)
            log.unlink()


def speed(log: Path, framework: str, size_mb: int, repeats: int) -> Figure:
    by_grep, by_us = compare(log, repeats)
    whole = seconds(lambda: list(parse(log).steps))
    return Figure(
        f"parsing {size_mb} MB of {framework}'s log ({log.stem}): speed / that of grep -c",
        by_grep / by_us,
        BAR if log.stem != "dense" else None,
        at_least=True,
        detail=f"grep {by_grep:.3f} s, llmb {by_us:.3f} s, {size_mb / by_us:,.0f} MB/s, {grep(log):,} lines; "
        f"with the figures of every step {whole:.3f} s",
    )


def memory(large: Path, small: Path, framework: str) -> Figure:
    low, high = peak_mb(small), peak_mb(large)
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
