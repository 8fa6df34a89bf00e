"""Real control groups with little memory, in which the kernel kills processes. They need root."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from parts.deadline import wait_until

ROOT = Path("/sys/fs/cgroup")
LIMITS = {"memory/memory.limit_in_bytes": ROOT / "memory", "cgroup.controllers": ROOT}
"""A file that shows a version of control groups, and the folder in which its groups that limit memory are created."""

HOG = ["python3", "-c", "hog = [bytearray(1 << 20) for _ in range(1 << 12)]"]
"""A program that needs 4 GiB."""

_numbers = itertools.count()


@contextmanager
def little_memory(limit_mib: int = 128) -> Iterator[Path]:
    """Create a control group with so much memory, until the block ends. Skip the test if that is impossible."""
    folder = next((folder for file, folder in LIMITS.items() if (ROOT / file).exists()), ROOT)
    group = folder / f"llmb-test-{os.getpid()}-{next(_numbers)}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("the kernel has no control groups in which memory can be limited here")
    try:
        limit = next((file for name in ("limit_in_bytes", "max") if (file := group / f"memory.{name}").exists()), None)
        if limit is None:
            pytest.skip("the kernel has no control groups in which memory can be limited here")
        limit.write_text(str(limit_mib << 20))
        yield group
    finally:
        # a process that has ended its work may still exit
        wait_until(lambda: not (group / "cgroup.procs").read_text(), "the end of all processes of the group")
        group.rmdir()


def inside(group: Path, command: Sequence[str]) -> list[str]:
    """Return a command that runs a command in a control group."""
    return ["bash", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "bash", *command]


def run_out_of_memory(group: Path) -> None:
    """Run a program in a control group until the kernel kills it."""
    assert subprocess.run(inside(group, HOG), check=False).returncode == -9
