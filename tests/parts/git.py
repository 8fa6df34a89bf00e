"""A Git repository that runs fetch."""

from __future__ import annotations

import subprocess
from pathlib import Path

GIT = [
    "git",
    "-c",
    "user.name=a",
    "-c",
    "user.email=a@b",
    "-c",
    "init.defaultBranch=main",
    "-c",
    "commit.gpgsign=false",
]


class Upstream:
    """A repository with three commits, of which the second is not the tip of anything."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"file://{folder}"
        folder.mkdir()
        self.git("init", "--quiet")
        self.commits = [self.commit(f"version {number}") for number in range(3)]

    def git(self, *words: str) -> str:
        done = subprocess.run([*GIT, "-C", str(self.folder), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, text: str) -> str:
        (self.folder / "scripts").mkdir(exist_ok=True)
        (self.folder / "scripts" / "train.py").write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", text)
        return self.git("rev-parse", "HEAD")
