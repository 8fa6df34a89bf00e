"""Container images: enroot addresses, and the import task."""

from __future__ import annotations

import fcntl
import os
import platform
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llmb import Image, Target
from llmb_slurm.container_images import enroot_address, image_file, import_task
from llmb_slurm.options import SlurmOptions

DIGEST = "sha256:" + 64 * "0"
ENROOT = """#!/bin/bash
echo "$@" >>{folder}/calls
[ "$1 $2" = "import --output" ] || exit 2
[ ! -e "$3" ] || {{ echo "File already exists" >&2; exit 1; }}
cat {folder}/content >"$3"
exit $(cat {folder}/status)
"""


def squashfs(size: int, stated: int | None = None) -> bytes:
    """Return a file of this size with a superblock that states a size."""
    head = b"hsqs" + bytes(36) + struct.pack("<Q", size if stated is None else stated)
    return head + bytes(size - len(head))


@pytest.mark.parametrize(
    ("ref", "digest", "address"),
    [
        ("nvcr.io/nvidia/nemo:24.09", None, "docker://nvcr.io#nvidia/nemo:24.09"),
        ("ghcr.io/nvidia/jax:x", DIGEST, f"docker://ghcr.io#nvidia/jax:{DIGEST}"),
        ("localhost:5000/a:1", None, "docker://localhost:5000#a:1"),
        ("localhost:5000/a", DIGEST, f"docker://localhost:5000#a:{DIGEST}"),
        ("ubuntu:22.04", None, "docker://ubuntu:22.04"),
        ("library/ubuntu", None, "docker://library/ubuntu"),
    ],
)
def test_an_enroot_address_has_a_hash_sign_after_the_registry(ref: str, digest: str | None, address: str) -> None:
    assert enroot_address(Image(ref=ref, digest=digest)) == address


class Import:
    """The job of an import, run on this machine with a stand-in for enroot."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.set_output(squashfs(1000))
        enroot = folder / "bin/enroot"
        enroot.parent.mkdir()
        enroot.write_text(ENROOT.format(folder=folder))
        enroot.chmod(0o755)
        monkeypatch.setenv("PATH", f"{enroot.parent}:{os.environ['PATH']}")
        image = Image(ref="nvcr.io/nvidia/nemo:24.09")
        target = Target(scheduler="slurm", workdir=str(folder / "work"), options=SlurmOptions())
        self.task = import_task(image, target.workdir, target.cache)
        self.file = Path(image_file(image, target.cache))
        assert not isinstance(self.task.work, str)
        for path, text in self.task.work.files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text)

    def set_output(self, content: bytes, status: int = 0) -> None:
        (self.folder / "content").write_bytes(content)
        (self.folder / "status").write_text(str(status))

    def run(self) -> subprocess.CompletedProcess[str]:
        assert not isinstance(self.task.work, str)
        return subprocess.run(self.task.work.phases[0].command, capture_output=True, text=True)

    @property
    def complete(self) -> bool:
        return subprocess.run(["bash", "-c", self.task.check]).returncode == 0

    @property
    def calls(self) -> list[str]:
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    return Import(tmp_path, monkeypatch)


def test_an_image_is_imported_once_and_kept(importing: Any) -> None:
    assert not importing.complete
    assert importing.run().returncode == 0
    assert importing.complete
    assert importing.run().returncode == 0
    assert len(importing.calls) == 1
    assert importing.calls[0].endswith("docker://nvcr.io#nvidia/nemo:24.09")


def test_a_second_import_waits_for_the_first_and_reuses_its_file(importing: Any) -> None:
    command = list(importing.task.work.phases[0].command)
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [each.wait() for each in both] == [0, 0]
    assert len(importing.calls) == 1


@pytest.mark.parametrize(
    ("content", "status"),
    [(squashfs(1000), 1), (squashfs(1000, stated=5000), 0), (b"", 0), (b"<html>not an image</html>", 0)],
    ids=["enroot failed", "cut off", "empty", "something else"],
)
def test_an_incomplete_image_is_discarded_and_imported_again(importing: Any, content: bytes, status: int) -> None:
    importing.set_output(content, status)
    failed = importing.run()
    assert failed.returncode != 0
    assert "Traceback" not in failed.stderr
    assert not importing.complete
    assert list(importing.file.parent.glob("*partial*")) == []
    importing.set_output(squashfs(1000))
    assert importing.run().returncode == 0
    assert importing.complete


def test_an_import_removes_what_dead_imports_left_and_nothing_of_a_living_import(importing: Any) -> None:
    folder = importing.file.parent
    folder.mkdir(parents=True)
    dead, of_a_dead, of_a_living = (folder / f"{name}.sqsh" for name in ("dead", "killed", "living"))
    left = [Path(f"{file}.node1-17.partial") for file in (importing.file, dead, of_a_dead, of_a_living)]
    for partial in left:
        partial.write_bytes(squashfs(1000))
        Path(str(partial).replace(".node1-17.partial", ".lock")).touch()
    killed = subprocess.Popen(["bash", "-c", f"exec 9>>{of_a_dead}.lock; flock 9; echo; exec sleep 1000"], stdout=-1)
    assert killed.stdout
    killed.stdout.readline()
    killed.kill()
    killed.communicate()
    with Path(f"{of_a_living}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = importing.run()
    assert done.returncode == 0, done.stderr
    assert importing.complete
    assert list(folder.glob("*.partial")) == [left[3]]


def test_an_import_follows_no_link(importing: Any) -> None:
    victim, folder = importing.folder / "victim", importing.file.parent
    victim.write_text("precious")
    folder.mkdir(parents=True)
    checksum, lock = Path(f"{importing.file}.sha256"), Path(f"{importing.file}.lock")
    checksum.symlink_to(victim)
    lock.symlink_to(victim)
    failed = importing.run()
    assert failed.returncode != 0
    assert (
        f"the lock {lock} on {platform.node()} is a symbolic link, not a regular file; run `rm {lock}`" in failed.stderr
    )
    lock.unlink()
    assert importing.run().returncode == 0
    assert not checksum.is_symlink()
    assert victim.read_text() == "precious"


def test_without_locks_an_import_removes_nothing_of_others(importing: Any) -> None:
    flock = importing.folder / "bin/flock"
    flock.write_text("#!/bin/sh\necho 'flock: 9: Function not implemented' >&2; exit 71\n")
    flock.chmod(0o755)
    importing.file.parent.mkdir(parents=True)
    partial = Path(f"{importing.file}.node1-17.partial")
    partial.touch()
    assert importing.run().returncode == 0
    assert importing.complete
    assert partial.exists()


def test_a_file_truncated_later_is_incomplete(importing: Any) -> None:
    importing.run()
    importing.file.write_bytes(importing.file.read_bytes()[:500])
    assert not importing.complete
