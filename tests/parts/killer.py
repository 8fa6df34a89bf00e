"""Client of killing.py, which runs ``llmb`` and kills it at given moments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

KILLING = Path(__file__).parent.parent / "killing.py"
STAGES = ("preparing", "before the start", "after the start", "running", "finishing")


class Killer:
    """Server process of killing.py."""

    def __init__(self, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(KILLING)],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, jobs: list[dict[str, Any]]) -> list[int]:
        """Run jobs concurrently, and return the exit code of each."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(jobs) + "\n")
        self._process.stdin.flush()
        return list(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.communicate()


def spread(count: int, wanted: int) -> list[int]:
    """Return ``wanted`` numbers from 1 to ``count``, spread evenly, with the first and the last."""
    if count <= wanted:
        return list(range(1, count + 1))
    return sorted({1 + round(index * (count - 1) / (wanted - 1)) for index in range(wanted)})
