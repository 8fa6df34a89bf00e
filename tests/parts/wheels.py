"""Wheels of the distributions of this repository, and virtual environments that contain nothing else."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uv
from parts.deadline import DEADLINE_S

ROOT = Path(__file__).parents[2]
PRODUCT = [ROOT / "core", *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
EXAMPLES = sorted(path.parent for path in ROOT.glob("examples/plugins/*/pyproject.toml"))
UV = uv.find_uv_bin()


def build(projects: Iterable[Path], folder: Path) -> dict[str, Path]:
    """Build the wheel of each project from its source distribution. Return the wheels by folder name.

    Another process may build them in the same folder at the same time: each wheel is built once.
    """

    def one(project: Path) -> tuple[str, Path]:
        out = folder / project.name
        if not list(out.glob("*.whl")):
            run(UV, "build", "--quiet", "--out-dir", str(out), str(project))
        [wheel] = out.glob("*.whl")
        return project.name, wheel

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock, ThreadPoolExecutor(2) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return dict(pool.map(one, projects))


class EmptyEnvironment:
    """Virtual environment that does not contain this repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.python = folder / "venv/bin/python"
        run(UV, "venv", "--quiet", "--no-project", str(folder / "venv"))

    @property
    def env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        path = f"{self.python.parent}{os.pathsep}{kept['PATH']}"
        return {**kept, "PATH": path, "LLMB_HOME": str(self.home), "XDG_CONFIG_HOME": str(self.folder / "config")}

    def install(self, *what: Path | str) -> None:
        run(UV, "pip", "install", "--quiet", "--python", str(self.python), *map(str, what))

    def llmb(
        self, *arguments: str, env: Mapping[str, str] | None = None, timeout_s: float = DEADLINE_S
    ) -> subprocess.CompletedProcess[str]:
        """Run the installed ``llmb`` outside of this repository."""
        return subprocess.run(
            [self.python.parent / "llmb", *arguments],
            cwd=self.folder,
            env={**self.env, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
