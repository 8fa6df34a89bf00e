"""The start of `llmb --help` and `import llmb` as ratios, and the time that `llmb run` adds to the training command.

python benchmarks/startup.py [--run]        --run also trains the quickstart (some minutes)
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from figure import Figure, children_cpu_s, show, usual_environment

ROOT = Path(__file__).parents[1]
LLMB = (sys.executable, "-m", "llmb")
REPEATS = 15
PAIRS = 7
"""Number of trainings with and without llmb. Trainings on the same machine differ by a second or more."""


def best(commands: dict[str, list[str]], clock: Callable[[], float] = time.perf_counter) -> dict[str, float]:
    """Return the time in seconds of the fastest of many runs of each command. The commands take turns."""
    fastest = dict.fromkeys(commands, float("inf"))
    for _ in range(REPEATS):
        for name, command in commands.items():
            started = clock()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            fastest[name] = min(fastest[name], clock() - started)
    return fastest


def start_up() -> Iterator[Figure]:
    python = [sys.executable, "-c"]
    seconds = best(
        {
            "help": [str(Path(sys.executable).with_name("llmb")), "--help"],
            "typer": [*python, "import typer, rich.console"],
            "llmb": [*python, "import llmb"],
            "attrs": [*python, "import attrs"],
        }
    )
    for what, ours, theirs, bar in (
        ("llmb --help / import typer, rich.console", "help", "typer", 2.0),
        ("import llmb / import attrs", "llmb", "attrs", 1.6),
    ):
        detail = f"{1000 * seconds[ours]:.0f} ms, {1000 * seconds[theirs]:.0f} ms"
        yield Figure(what, seconds[ours] / seconds[theirs], bar, detail=detail)


LINES = {
    "command": "llmb rec",
    "recipe": "llmb recipes max",
    "run": "llmb show k",
    "target": "llmb doctor e",
    "framework": "llmb parse --framework m",
    "filter": "llmb report {d",
}
"""Command lines that a shell completes, by what is completed."""


def completing(line: str) -> list[str]:
    """Return the variables with which bash requests the completion of a line."""
    return ["_LLMB_COMPLETE=complete_bash", f"COMP_WORDS={line}", f"COMP_CWORD={len(line.split()) - 1}"]


def completion() -> Iterator[Figure]:
    """Compare the completion of each kind of value with that of a command, with 1,000 recorded runs."""
    with tempfile.TemporaryDirectory() as home:
        for number in range(1000):
            Path(home, "runs", f"k{number:04}-tiny").mkdir(parents=True)
        commands = {what: ["env", f"LLMB_HOME={home}", *completing(line), *LLMB] for what, line in LINES.items()}
        milliseconds = {what: 1000 * seconds for what, seconds in best(commands).items()}
    slowest = max(milliseconds, key=lambda what: milliseconds[what])
    detail = ", ".join(f"{what} {each:.0f} ms" for what, each in milliseconds.items())
    more = milliseconds[slowest] - milliseconds["command"]
    yield Figure(f"completing a {slowest}, more than a command", more, 100, "ms", detail=detail)


PACKS = 20
PACK_RECIPE = """
release = "1"
description = "a recipe of a pack"
source = "a benchmark"
window = "last"
steps = 50
time_limit = "1h"
seq_len = 4096
params = 7e9
global_batch_size = "4 * gpus"
"""


def packs() -> Iterator[Figure]:
    """Compare the CPU time of `llmb recipes` and of completing a recipe with and without 20 installed packs."""
    with tempfile.TemporaryDirectory() as site:
        for number in range(PACKS):
            _install_pack(Path(site), f"pack{number}")
        calls = {
            "llmb recipes": [*LLMB, "recipes", "--json"],
            "completing a recipe": [*completing(LINES["recipe"]), *LLMB],
        }
        commands = {what: ["env", *words] for what, words in calls.items()}
        commands |= {f"{what} with packs": ["env", f"PYTHONPATH={site}", *words] for what, words in calls.items()}
        seconds = best(commands, clock=children_cpu_s)
    for what in calls:
        detail = f"CPU {1000 * seconds[f'{what} with packs']:.0f} ms, {1000 * seconds[what]:.0f} ms"
        ratio = seconds[f"{what} with packs"] / seconds[what]
        yield Figure(f"{what} with {PACKS} packs / without", ratio, 1.5, detail=detail)


def _install_pack(site: Path, name: str) -> None:
    """Install a pack with a recipe, as pip would do."""
    info = site / f"llmb_{name}-1.0.dist-info"
    (site / name / "recipes/maxtext").mkdir(parents=True)
    info.mkdir()
    (site / name / f"recipes/maxtext/{name}-7b.toml").write_text(PACK_RECIPE)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: llmb-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[llmb.packs]\n{name} = {name}\n")


def quickstart(repeats: int) -> Iterator[Figure]:
    """Compare the quickstart under llmb with its training command alone, in the same environment."""
    with tempfile.TemporaryDirectory() as home:
        llmb = [*LLMB, "run", str(ROOT / "examples/quickstart.toml"), "--json"]
        env = usual_environment(LLMB_HOME=home)
        started = time.perf_counter()
        # installs the environment, measures the peak FLOP/s, and fills the compilation cache
        trained(llmb, env)
        what = "the quickstart for the first time, its packages downloaded"
        yield Figure(what, time.perf_counter() - started, 120, "s")
        under_llmb, alone = [], []
        for _ in range(repeats):
            started = time.perf_counter()
            [run] = trained(llmb, env)
            under_llmb.append(time.perf_counter() - started)
            bare = bare_command(Path(run["directory"], "job.sh").read_text())
            started = time.perf_counter()
            subprocess.run(["bash", "-c", bare], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            alone.append(time.perf_counter() - started)
    # The fastest of each: trainings differ by seconds, and other work on the machine only adds time.
    added = min(under_llmb) - min(alone)
    detail = f"the fastest of {_seconds(under_llmb)}; alone {_seconds(alone)}"
    yield Figure("llmb run beyond the bare training command", added, 1.0, "s", detail=detail)


def _seconds(times: list[float]) -> str:
    return f"{', '.join(f'{each:.1f}' for each in times)} s"


def bare_command(script: str) -> str:
    """Return the command of a job's script as one rank, in the environment of the script."""
    environment = re.search(r"^environment\(\) \{.*?^\}$", script, re.MULTILINE | re.DOTALL)
    assert environment
    settings = [line for line in script.splitlines() if line.startswith(("venv=", "export LLMB_"))]
    words = shlex.split(next(line for line in script.splitlines() if line.startswith("phase train ")))[3:]
    rank = "export LLMB_WORLD_SIZE=1 LLMB_RANK=0"
    return "\n".join(["within='' gpus=''", *settings, environment[0], "environment", rank, shlex.join(words)])


def trained(command: list[str], env: dict[str, str]) -> list[dict[str, Any]]:
    """Return the runs in the output of ``llmb run --json``."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return list(json.loads(done.stdout)["runs"])


def figures(repeats: int = PAIRS, *, run: bool = True) -> Iterator[Figure]:
    yield from start_up()
    yield from completion()
    yield from packs()
    if run:
        yield from quickstart(repeats)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--run", action="store_true", help="train the quickstart as well")
    options.add_argument("--repeats", type=int, default=PAIRS, help="how often it is trained, with and without llmb")
    wanted = options.parse_args()
    sys.exit(show(figures(wanted.repeats, run=wanted.run)))
