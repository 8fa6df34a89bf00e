"""Specs as files, plugins as installed distributions, and ``llmb`` as a process."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts import forked

import llmb
from llmb.cli.app import main
from llmb.plan_runs import plan
from llmb.plugins.registry import PluginRegistry

Tables = dict[str, dict[str, Any]]

USUAL: Tables = {
    "workload": {"recipe": "maxtext/llama2-tiny", "gpu_type": "cpu", "dtype": "fp32", "gpus": 1},
    "target": {"scheduler": "local"},
}
BIG: Tables = {
    "workload": {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64},
    "target": {"scheduler": "local"},
}


class SpecFile:
    """A spec in a file of its own, really loaded and planned."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.registry: PluginRegistry | None = None

    def write(self, text: str) -> SpecFile:
        self.file.write_text(text, encoding="utf-8")
        return self

    def usual(self, **tables: dict[str, Any]) -> SpecFile:
        """Write a spec that is valid on this machine, with these keys over it."""
        return self._merged(USUAL, tables)

    def big(self, **tables: dict[str, Any]) -> SpecFile:
        """Write a spec of 64 GPUs, more than this machine has."""
        return self._merged(BIG, tables)

    def _merged(self, base: Tables, tables: Tables) -> SpecFile:
        names = [*base, *(name for name in tables if name not in base)]
        return self.write(tomli_w.dumps({name: {**base.get(name, {}), **tables.get(name, {})} for name in names}))

    def load(self, *overrides: str, target: str | None = None) -> llmb.Workload:
        return llmb.load(self.file, overrides=overrides, target=target, registry=self.registry)

    def runs(self, *overrides: str, target: str | None = None) -> list[llmb.Run[Any]]:
        return [placed.run for placed in self.load(*overrides, target=target).runs]

    def errors(self, *overrides: str, target: str | None = None) -> dict[str, llmb.Fault]:
        """Return all errors by key; errors without a key by message."""
        with pytest.raises(llmb.SpecError) as raised:
            plan(self.load(*overrides, target=target), registry=self.registry or PluginRegistry())
        errors = raised.value.faults
        assert len(set(errors)) == len(errors), "an error is reported twice"
        return {error.key or error.message: error for error in errors}


@pytest.fixture
def spec(tmp_path: Path) -> SpecFile:
    return SpecFile(tmp_path / "spec.toml")


@pytest.fixture
def write_targets() -> Callable[[str], Path]:
    """Return a function that writes the user's targets file."""

    def write(text: str) -> Path:
        file = Path(os.environ["XDG_CONFIG_HOME"]) / "llmb" / "targets.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write


class Site:
    """A folder of installed distributions, as pip would leave them there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def install(
        self,
        distribution: str,
        *,
        files: Mapping[str, str],
        entry_points: Mapping[str, Mapping[str, str]],
        version: str = "1.2.3",
        requires: tuple[str, ...] = (),
    ) -> None:
        """Write a distribution: its files, and a dist-info with METADATA, entry_points.txt and RECORD."""
        info = f"{distribution.replace('-', '_')}-{version}.dist-info"
        metadata = [
            "Metadata-Version: 2.1",
            f"Name: {distribution}",
            f"Version: {version}",
            *(f"Requires-Dist: {requirement}" for requirement in requires),
        ]
        groups = [
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
            for group, entries in entry_points.items()
        ]
        contents = {
            **files,
            f"{info}/METADATA": "\n".join(metadata) + "\n",
            f"{info}/entry_points.txt": "\n".join(groups),
            f"{info}/INSTALLER": "test\n",
        }
        for name, text in contents.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        record = [f"{name},sha256={_digest(text)},{len(text.encode())}" for name, text in contents.items()]
        (self.folder / info / "RECORD").write_text("\n".join([*record, f"{info}/RECORD,,"]) + "\n")

    def extension(self, code: str, *, distribution: str = "llmb-extra") -> None:
        """Install an extension named ``extra``."""
        package = distribution.replace("-", "_")
        files, entry_points = {f"{package}.py": code}, {"llmb.extensions": {"extra": f"{package}:Plugin"}}
        self.install(distribution, files=files, entry_points=entry_points)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


class Llmb:
    """The command line, seeing the distributions of the site besides those of this environment.

    Called, it runs within this process, which is quick: with the site on ``sys.path``, and without the modules of an
    earlier call. ``process`` runs it as its user does.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = [str(folder / "site")]

    def __call__(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        words = list(map(str, arguments))
        out, err = io.StringIO(), io.StringIO()
        status: Any = 0
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("default")
            patch.setattr(sys, "argv", ["llmb", *words])
            patch.setattr(sys, "path", [*self.path, *sys.path])
            patch.setattr(sys, "dont_write_bytecode", True)
            importlib.invalidate_caches()
            try:
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    main()
            except SystemExit as end:
                status = end.code or 0
            finally:
                self._forget_modules()
        return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())

    def _forget_modules(self) -> None:
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "") or "").startswith(str(self.folder)):
                del sys.modules[name]

    def process(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return forked.run_llmb([*map(str, arguments)], env={**os.environ, "PYTHONPATH": os.pathsep.join(self.path)})

    def json(self, *arguments: str | Path, status: int = 0) -> Any:
        """Return the output with ``--json``, which must be one document."""
        done = self(*arguments, "--json")
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def run_llmb(tmp_path: Path) -> Llmb:
    return Llmb(tmp_path)
