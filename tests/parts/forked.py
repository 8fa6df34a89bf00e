"""``llmb`` in a fork of a server that has imported everything, because a start with all imports takes half a second."""

from __future__ import annotations

import ctypes
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

from parts.deadline import DEADLINE_S

PACKAGES = ("llmb", "llmb_local", "llmb_maxtext", "llmb_megatron_bridge", "llmb_nemo_launcher", "llmb_slurm")
LIBRARIES = ("jinja2", "packaging.requirements", "platformdirs.unix", "rich.console", "rich.live", "rich.table")


def run_llmb(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    without_rights: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a process of its own, on request without root's right to read and write any file."""
    with tempfile.TemporaryDirectory(prefix="llmb-forked-") as folder:
        outputs = [f"{folder}/out", f"{folder}/err"]
        exit_code = run_llmb_into(outputs, arguments, env=env, cwd=cwd, without_rights=without_rights)
        out, err = (Path(output).read_text(errors="surrogateescape") for output in outputs)
        return subprocess.CompletedProcess(["llmb", *arguments], exit_code, out, err)


def run_llmb_into(
    outputs: Sequence[str],
    arguments: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    without_rights: bool = False,
) -> int:
    """Run a command whose standard output and standard error are files or terminals. Return its exit code."""
    environment = dict(os.environ if env is None else env)
    details = (list(arguments), environment, str(cwd or Path.cwd()), [*outputs], without_rights)
    process = ForkServerProcess(target=_main, args=details)
    process.start()
    process.join(DEADLINE_S)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise subprocess.TimeoutExpired(["llmb", *arguments], DEADLINE_S)
    return process.exitcode


def _main(
    arguments: list[str], environment: dict[str, str], cwd: str, outputs: list[str], without_rights: bool
) -> None:
    """Behave like ``python -m llmb``."""
    for stream, name in enumerate(outputs, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = ["llmb", *arguments]
    if without_rights:
        drop_rights()
    from llmb.cli.app import main
    from llmb.cli.views import progress
    from llmb.plugins import running_code

    progress.ACTIVITY_DELAY_S = running_code.SLOW_S = 3600.0  # a busy machine prints no line about that
    main()


def drop_rights() -> None:
    """Give up CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, so that the modes of files hold for root too (capset(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    version_3_of_this_process = (ctypes.c_uint32 * 2)(0x20080522, 0)
    capabilities = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, for the lower and the upper 32
    if libc.capget(version_3_of_this_process, capabilities) == 0:
        capabilities[0] &= ~0b110
        capabilities[1] &= ~0b110
        if libc.capset(version_3_of_this_process, capabilities) == 0:
            return
    raise OSError(ctypes.get_errno(), "capset")


def _modules() -> Iterator[str]:
    for package in map(import_module, PACKAGES):
        found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        yield from (each.name for each in found if not each.name.endswith(".__main__") and ".cpu." not in each.name)


multiprocessing.get_context("forkserver").set_forkserver_preload([*LIBRARIES, *_modules()])
