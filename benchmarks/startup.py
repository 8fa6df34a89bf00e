"""Start-up as ratios, measured in one run: `llmb --help`, `import llmb`, and what `llmb run` adds to the bare command.

python benchmarks/startup.py [--run]        --run also trains the quickstart (some minutes)
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from figure import Figure, show

ROOT = Path(__file__).parents[1]
REPEATS = 15


def best(commands: dict[str, list[str]], repeats: int = REPEATS) -> dict[str, float]:
    """The fastest of many runs of each command in seconds, taking turns so that a busy machine harms all alike."""
    fastest = dict.fromkeys(commands, float("inf"))
    for _ in range(repeats):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            fastest[name] = min(fastest[name], time.perf_counter() - started)
    return fastest


def start_up() -> Iterator[Figure]:
    python = [sys.executable, "-c"]
    seconds = best(
        {
            "help": [str(Path(sys.executable).with_name("llmb")), "--help"],
            "typer": [*python, "import typer, rich.console"],
            "llmb": [*python, "import llmb"],
            "attrs": [*python, "import attrs, cattrs"],
        }
    )
    for what, ours, theirs, bar in (
        ("llmb --help / import typer, rich.console", "help", "typer", 2.0),
        ("import llmb / import attrs, cattrs", "llmb", "attrs", 1.6),
    ):
        detail = f"{1000 * seconds[ours]:.0f} ms, {1000 * seconds[theirs]:.0f} ms"
        yield Figure(what, seconds[ours] / seconds[theirs], bar, detail=detail)


def quickstart(repeats: int) -> Iterator[Figure]:
    """The quickstart under llmb, and then its own command, alone, with the environment that its job had."""
    with tempfile.TemporaryDirectory() as home:
        llmb = [sys.executable, "-m", "llmb", "run", str(ROOT / "examples/quickstart.toml"), "--json"]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env["LLMB_HOME"] = home
        started = time.perf_counter()
        # makes the environment, measures the peak, and fills the compilation cache that both ways share
        subprocess.run(llmb, env=env, check=True, stdout=subprocess.DEVNULL)
        yield Figure(
            "the quickstart for the first time, its packages downloaded", time.perf_counter() - started, 120, "s"
        )
        added = []
        for _ in range(repeats):
            started = time.perf_counter()
            done = subprocess.run(llmb, env=env, check=True, stdout=subprocess.PIPE)
            under_llmb = time.perf_counter() - started
            [run] = json.loads(done.stdout)["runs"]
            script = Path(run["directory"], "job.sh").read_text().splitlines()
            exports = [line for line in script if line.startswith("export ") and "MASTER" not in line]
            words = shlex.split(next(line for line in script if line.startswith("phase train ")))[3:]
            bare = "\n".join([*exports, "export LLMB_WORLD_SIZE=1 LLMB_RANK=0", shlex.join(words)])
            started = time.perf_counter()
            subprocess.run(["bash", "-c", bare], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            added.append(under_llmb - (time.perf_counter() - started))
    detail = f"the least of {', '.join(f'{each:.2f}' for each in added)} s"
    yield Figure("llmb run beyond the bare training command", min(added), 1.0, "s", detail=detail)


def figures(repeats: int = 3, *, run: bool = True) -> Iterator[Figure]:
    yield from start_up()
    if run:
        yield from quickstart(repeats)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--run", action="store_true", help="train the quickstart as well")
    options.add_argument("--repeats", type=int, default=3, help="how often it is trained, with and without llmb")
    wanted = options.parse_args()
    sys.exit(show(figures(wanted.repeats, run=wanted.run)))
