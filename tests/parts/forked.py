"""``llmb`` in a fork of a server that has imported everything, because a start with all imports takes half a second."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
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
    process = start_llmb(outputs, arguments, env=env, cwd=cwd, without_rights=without_rights, activities=False)
    process.join(DEADLINE_S)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise subprocess.TimeoutExpired(["llmb", *arguments], DEADLINE_S)
    return process.exitcode


def start_llmb(
    outputs: Sequence[str],
    arguments: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    without_rights: bool = False,
    own_session: bool = False,
    activities: bool = True,
) -> ForkServerProcess:
    """Start a command, on request in a session of its own. Return once it has opened its outputs.

    Without ``activities``, a busy machine prints no lines such as ``reading my.toml ...``.
    """
    opened, report = multiprocessing.Pipe(duplex=False)
    environment = dict(os.environ if env is None else env)
    details = ([*arguments], environment, str(cwd or Path.cwd()), [*outputs], report)
    process = ForkServerProcess(target=_main, args=(*details, without_rights, own_session, activities))
    process.daemon = True  # if a failed test leaves it, the tests do not wait for its end, but end it
    process.start()
    report.close()
    with opened, suppress(EOFError):
        opened.recv()
    return process


class Started:
    """A command in a process of its own, with the members of `subprocess.Popen` that tests use."""

    def __init__(self, arguments: Sequence[str], *, env: Mapping[str, str], start_new_session: bool = False) -> None:
        pipes = [os.pipe(), os.pipe()]
        outputs = [f"/proc/{os.getpid()}/fd/{write}" for _, write in pipes]
        self.args = ["llmb", *arguments]
        self._process = start_llmb(outputs, arguments, env=env, own_session=start_new_session)
        for _, write in pipes:
            os.close(write)
        self.stdout, self.stderr = (os.fdopen(read, errors="surrogateescape") for read, _ in pipes)

    @property
    def pid(self) -> int:
        return int(self._process.pid or 0)

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float = DEADLINE_S) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def communicate(self, timeout: float = DEADLINE_S) -> tuple[str, str]:
        deadline = threading.Timer(timeout, self.kill)
        deadline.start()
        with ThreadPoolExecutor(1) as reader, self.stdout, self.stderr:
            errors = reader.submit(self.stderr.read)
            out, err = self.stdout.read(), errors.result()
        deadline.cancel()
        self.wait(timeout)
        return out, err

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _main(
    arguments: list[str],
    environment: dict[str, str],
    cwd: str,
    outputs: list[str],
    report: Connection,
    without_rights: bool,
    own_session: bool,
    activities: bool,
) -> None:
    """Behave like ``python -m llmb``."""
    if own_session:
        os.setsid()
        if outputs[0].startswith("/dev/"):  # becomes its controlling terminal, which sends SIGINT and SIGWINCH
            os.close(os.open(outputs[0], os.O_RDWR))
    for stream, name in enumerate(outputs, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), stream)
    report.close()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = ["llmb", *arguments]
    if without_rights:
        drop_rights()
    from llmb.cli.app import main
    from llmb.cli.views import plain_view
    from llmb.plugins import slow_hooks

    if not activities:
        plain_view.ACTIVITY_DELAY_S = slow_hooks.SLOW_S = 3600.0
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
