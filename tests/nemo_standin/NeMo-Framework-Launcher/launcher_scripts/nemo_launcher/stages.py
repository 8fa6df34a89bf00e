"""What the stand-ins of the launcher's three stages share; see the README beside the tree."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

FILE = Path.cwd().parents[1] / "standin.json"
SETTINGS = json.loads(FILE.read_text()) if FILE.exists() else {}


def arguments() -> dict[str, str]:
    """The words ``key=value``."""
    return dict(word.split("=", 1) for word in sys.argv[1:])


def shards(numbers: str) -> Iterable[int]:
    """Those of the shards first-last that are this rank's."""
    first, _, last = numbers.partition("-")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    everything = range(int(first), int(last) + 1)
    return everything[rank * len(everything) // world : (rank + 1) * len(everything) // world]


def run(stage: str, work: Callable[[dict[str, str], Path, int], None]) -> None:
    """Do the work for each shard. As with the launcher's, a failure is printed and nothing more."""
    given = arguments()
    assert given["cluster_type"] == "bcp", "the others need a scheduler's own variables"
    folder = Path(given["data_dir"])
    for shard in shards(given["file_numbers"]):
        if SETTINGS.get("fail") == stage:
            print(f"{stage} of shard {shard} failed: the network is down", flush=True)
        else:
            work(given, folder, shard)
            print(f"{stage} of shard {shard} is done", flush=True)
