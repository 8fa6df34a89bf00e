"""``llmb`` in a fork of a server that has imported everything, because a start with all imports takes half a second."""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from multiprocessing.context import ForkServerProcess
from pathlib import Path

DEADLINE_S = 60.0
PACKAGES = ("llmb", "llmb_local", "llmb_maxtext", "llmb_megatron_bridge", "llmb_nemo_launcher", "llmb_slurm")
LIBRARIES = ("jinja2", "packaging.requirements", "platformdirs.unix", "rich.console", "rich.live", "rich.table")


def run_llmb(
    arguments: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a process of its own."""
    environment = dict(os.environ if env is None else env)
    with tempfile.TemporaryDirectory(prefix="llmb-forked-") as folder:
        outputs = [f"{folder}/out", f"{folder}/err"]
        process = ForkServerProcess(target=_main, args=(list(arguments), environment, str(cwd or Path.cwd()), outputs))
        process.start()
        process.join(DEADLINE_S)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["llmb", *arguments], DEADLINE_S)
        out, err = (Path(output).read_text() for output in outputs)
        return subprocess.CompletedProcess(["llmb", *arguments], process.exitcode, out, err)


def _main(arguments: list[str], environment: dict[str, str], cwd: str, outputs: list[str]) -> None:
    """Behave like ``python -m llmb``."""
    for stream, name in enumerate(outputs, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = ["llmb", *arguments]
    from llmb.cli.app import main

    main()


def _modules() -> Iterator[str]:
    for package in map(import_module, PACKAGES):
        found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        yield from (each.name for each in found if not each.name.endswith(".__main__") and ".cpu." not in each.name)


multiprocessing.get_context("forkserver").set_forkserver_preload([*LIBRARIES, *_modules()])
