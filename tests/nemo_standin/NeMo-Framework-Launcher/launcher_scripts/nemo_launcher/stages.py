"""Functions that the stand-ins of the three stages share; see the README of the stand-ins."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

FILE = Path.cwd().parents[1] / "standin.json"
HANGING = FILE.with_name("hanging")
SETTINGS = json.loads(FILE.read_text()) if FILE.exists() else {}


def arguments() -> dict[str, str]:
    """Return the ``key=value`` arguments."""
    return dict(word.split("=", 1) for word in sys.argv[1:])


def shards(numbers: str) -> Iterable[int]:
    """Return the shards of ``first-last`` that this rank processes."""
    first, _, last = numbers.partition("-")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    everything = range(int(first), int(last) + 1)
    return everything[rank * len(everything) // world : (rank + 1) * len(everything) // world]


def run(stage: str, work: Callable[[dict[str, str], Path, int], None]) -> None:
    """Call ``work`` for each shard of this rank. Like the launcher, print a failure and exit with 0."""
    given = arguments()
    assert given["cluster_type"] == "bcp", "other cluster types need the variables of a scheduler"
    folder = Path(given["data_dir"])
    for shard in shards(given["file_numbers"]):
        if SETTINGS.get("hang") == shard and not HANGING.exists():
            HANGING.touch()
            signal.pause()
        if SETTINGS.get("fail") == stage:
            print(f"{stage} of shard {shard} failed: the network is down", flush=True)
        else:
            work(given, folder, shard)
            print(f"{stage} of shard {shard} is done", flush=True)
