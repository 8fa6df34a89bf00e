"""The check of a work directory before anything is recorded."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb.hosts.local_host import LocalHost
from llmb.hosts.work_directory import check_work_directory
from llmb.values.errors import TargetError


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a directory with room for a few files, on a file system of its own."""
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(tmp_path)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system needs root")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_missing_directory_is_created_and_left_empty(tmp_path: Path) -> None:
    check_work_directory(f"{tmp_path}/it's new", LocalHost(), "this machine")
    assert list((tmp_path / "it's new").rglob("*")) == [tmp_path / "it's new" / "runs"]


def test_a_full_disk_is_an_error_that_names_the_directory(small_disk: Path) -> None:
    with pytest.raises(TargetError, match=f"work directory {small_disk} on eos: .*No space left on device"):
        check_work_directory(str(small_disk), LocalHost(), "eos")
    assert not list(small_disk.rglob("*.check*"))
