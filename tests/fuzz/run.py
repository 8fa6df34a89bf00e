"""Run llmb on random inputs: no traceback, no control character on the terminal, every answer within 2 s.

The time is that of a machine with a free core: the time in which other processes have the CPU does not count.

    uv run --group dev python tests/fuzz/run.py --inputs 100000 --seed 1

A failure is printed with the option ``--only N``, which repeats this input alone. The commands change nothing outside
a temporary folder.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import signal
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))  # if started as a program
from fuzz.inputs import KINDS

from llmb.cli import app

LIMIT_S = 2.0
HANG_S = 20.0
REPORTED_EVERY = 1000  # inputs
SCHEDULER = Path("/proc/self/schedstat")
"""Linux: nanoseconds on a CPU, nanoseconds of waiting for one, and time slices of the main thread."""
EXIT_CODES = {0, 1, 2, 3, 4}


class Terminal(io.TextIOWrapper):
    """A stream that llmb takes for a terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        """Return True."""
        return True

    @property
    def text(self) -> str:
        """All text that was written."""
        return self.buffer.getvalue().decode(errors="replace")  # type: ignore[attr-defined]  # it is a BytesIO


def fuzz(seed: int, number: int, kind: str, limit_s: float = LIMIT_S) -> str:
    """Run llmb on one input. Return what was wrong, or an empty string."""
    random = Random(f"{seed}:{number}")
    with tempfile.TemporaryDirectory(prefix="llmb-fuzz-") as name:
        folder = Path(name)
        env = {"HOME": name, "LLMB_HOME": f"{name}/home", "XDG_CONFIG_HOME": f"{name}/config", "NO_COLOR": "1"}
        with _environment({**env, "TERM": "dumb", "COLUMNS": str(random.choice((20, 80, 200)))}):
            (folder / "work").mkdir()
            arguments = KINDS[kind](folder / "work", random)
            with chdir(folder / "work"):
                problem = _run(arguments, limit_s)
    return f"{problem}: llmb {shlex.join(arguments)!r}" if problem else ""


def _run(arguments: Sequence[str], limit_s: float) -> str:
    out, err, start_s = Terminal(), Terminal(), _clock_s()
    try:
        with redirect_stdout(out), redirect_stderr(err), _alarm():
            exit_code = app.execute(arguments)
    except SystemExit as end:
        exit_code = end.code if isinstance(end.code, int) else 1
    except BaseException as error:  # each is a bug
        if isinstance(error, KeyboardInterrupt):
            raise
        return "".join(traceback.format_exception(error)[-6:])
    seconds, text = _clock_s() - start_s, out.text + err.text
    if controls := {each for each in text if unicodedata.category(each) in ("Cc", "Cs")} - {"\t", "\n"}:
        return f"control characters {controls}"
    if "Traceback (most" in text:
        return f"traceback in the output: {text}"
    if exit_code not in EXIT_CODES:
        return f"exit code {exit_code}"
    return f"{seconds:.1f} s" if seconds > limit_s else ""


def _clock_s() -> float:
    """Return a clock without the time in which other processes have the CPU, if the system counts that time."""
    waited_ns = int(SCHEDULER.read_text().split()[1]) if SCHEDULER.exists() else 0
    return time.monotonic() - waited_ns / 1e9


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    saved = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


@contextmanager
def _alarm() -> Iterator[None]:
    """Raise TimeoutError in a command that hangs."""
    start_s = _clock_s()

    def stop(*_: object) -> None:
        if _clock_s() - start_s > HANG_S:
            raise TimeoutError(f"no answer within {HANG_S:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, HANG_S, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main() -> int:
    """Run the inputs of the command line. Return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input, to continue an earlier run")
    parser.add_argument("--only", type=int, help="run this input alone")
    parser.add_argument("--kind", choices=KINDS, help="run this kind of input alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [options.kind] if options.kind else [*KINDS]
    numbers = range(options.first, options.first + options.inputs) if options.only is None else [options.only]
    failures = 0
    for done, number in enumerate(numbers):
        if done and done % REPORTED_EVERY == 0:
            print(f"{done:,} of {len(numbers):,} inputs, {failures} failures", file=sys.stderr, flush=True)
        kind = names[number % len(names)]
        if problem := fuzz(options.seed, number, kind):
            failures += 1
            print(f"--seed {options.seed} --only {number} --kind {kind!r}: {problem}", flush=True)
    print(f"{len(numbers):,} inputs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
