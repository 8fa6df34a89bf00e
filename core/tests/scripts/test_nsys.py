"""nsys.sh as a scheduler runs it: the profiled ranks, their reports and their exit codes."""

from __future__ import annotations

import os
import subprocess
from importlib import resources
from pathlib import Path

import pytest

SCRIPT = resources.files("llmb.scripts") / "nsys.sh"
NSYS = """#!/bin/sh
echo "nsys $*"
while [ "$1" != --output ]; do shift; done
echo report >"$2.nsys-rep"
shift 2
exec "$@"
"""


@pytest.fixture(autouse=True)
def _nsys(tmp_path: Path) -> None:
    (tmp_path / "nsys").write_text(NSYS)
    (tmp_path / "nsys").chmod(0o755)


def rank(folder: Path, number: int, ranks: str, *, per_node: int = 4, exit_code: int = 0) -> tuple[int, list[str]]:
    """Return the exit code of one rank, and the lines that the rank and its nsys print."""
    node, local = divmod(number, per_node)
    place = {"RANK": number, "LOCAL_RANK": local, "NODE_RANK": node, "LOCAL_WORLD_SIZE": per_node}
    words = ["bash", str(SCRIPT), "reports/report", ranks, "--gpu-metrics", "nsys", "profile", "--"]
    done = subprocess.run(
        [*words, "sh", "-c", f"echo trained; exit {exit_code}"],
        cwd=folder,
        env={"PATH": f"{folder}:{os.environ['PATH']}", **{f"LLMB_{name}": str(value) for name, value in place.items()}},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("ranks", "captured", "with_metrics"),
    [
        ("0,1,2,3,4,5,6,7", [0, 1, 2, 3, 4, 5, 6, 7], [0, 4]),
        ("1,3,6", [1, 3, 6], [1, 6]),
        ("5", [5], [5]),
    ],
)
def test_the_named_ranks_are_profiled_with_metrics_once_per_node(
    tmp_path: Path, ranks: str, captured: list[int], with_metrics: list[int]
) -> None:
    printed = {number: rank(tmp_path, number, ranks)[1] for number in range(8)}

    assert all(lines[-1] == "trained" for lines in printed.values())
    assert [number for number, lines in printed.items() if lines[0].startswith("nsys profile")] == captured
    assert [number for number, lines in printed.items() if "--gpu-metrics" in lines[0]] == with_metrics
    reports = {path.name for path in (tmp_path / "reports").glob("*")}
    assert reports == {f"report_{number // 4}_{number % 4}.nsys-rep" for number in captured}


@pytest.mark.parametrize("number", [0, 1])
def test_the_exit_code_is_that_of_the_training(tmp_path: Path, number: int) -> None:
    assert rank(tmp_path, number, "0", exit_code=9)[0] == 9
