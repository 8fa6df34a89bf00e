"""Real disks without space: one in memory, and one with a quota of btrfs, which limits root, too. Both need root."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

FULL, EXCEEDED = "No space left on device", "Disk quota exceeded"
QUOTA_BYTES = 512 * 1024
BTRFS_BYTES = 128 * 1024 * 1024
"""The least that btrfs needs. Its file is sparse."""


@contextmanager
def small_disk(folder: Path, size: str = "512k") -> Iterator[Path]:
    """Mount a disk of this size on an empty directory, until the block ends. Skip the test if that is impossible."""
    with _mounted("-t", "tmpfs", "-o", f"size={size},mode=755", "llmb-test", str(folder)):
        yield folder


@contextmanager
def quota(folder: Path) -> Iterator[Path]:
    """Limit an empty directory to half a MiB, until the block ends. Skip the test if that is impossible."""
    if not shutil.which("mkfs.btrfs"):
        pytest.skip("btrfs-progs is not installed (see .ci/install-parts)")
    disk = folder.with_name(f"{folder.name}.disk")
    with disk.open("wb") as file:
        file.truncate(BTRFS_BYTES)
    subprocess.run(["mkfs.btrfs", "--quiet", disk], check=True, capture_output=True)
    with _mounted("-o", "loop", str(disk), str(folder), skip="the kernel has no btrfs or no loop devices"):
        for command in (["quota", "enable"], ["quota", "rescan", "-w"], ["qgroup", "limit", str(QUOTA_BYTES)]):
            subprocess.run(["btrfs", *command, folder], check=True, capture_output=True)
        yield folder


LIMITS = {FULL: small_disk, EXCEEDED: quota}
"""How to limit a directory, by the error that a program then gets."""


@contextmanager
def _mounted(*arguments: str, skip: str = "a disk may not be mounted here") -> Iterator[None]:
    if not shutil.which("mount") or subprocess.run(["mount", *arguments], capture_output=True).returncode:
        pytest.skip(skip)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", arguments[-1]], check=True)


def fill(folder: Path) -> Path:
    """Write a file until nothing more can be written, and return it. Syncs of btrfs may free space several times."""
    filler, full = folder / "filler", 0
    with filler.open("wb", buffering=0) as file:
        while full < 3:
            size = file.tell()
            with suppress(OSError):
                while True:
                    file.write(b"x" * 4096)
            subprocess.run(["sync", "--file-system", filler], check=True)
            full = full + 1 if file.tell() == size else 0
    if _is_btrfs(folder):
        _limit_to_use(folder)
    return filler


def _is_btrfs(folder: Path) -> bool:
    words = ["stat", "--file-system", "--format=%T", folder]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip() == "btrfs"


def _limit_to_use(folder: Path) -> None:
    """Lower the quota to what is in use. btrfs also counts reserved space, and frees it later if it is not needed."""
    show = ["btrfs", "qgroup", "show", "--raw", folder]
    last = subprocess.run(show, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    subprocess.run(["btrfs", "qgroup", "limit", last.split()[1], folder], check=True, capture_output=True)


def describe(folder: Path) -> str:
    """Return the use of a disk and its files with their times, for the message of a failed test."""
    words = f"df {folder}; btrfs qgroup show -re {folder}; ls -lR --full-time {folder}"
    return subprocess.run(["bash", "-c", words], capture_output=True, text=True).stdout
