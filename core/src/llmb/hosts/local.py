"""This machine as a host."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from llmb.files import write_atomically
from llmb.hookspecs import Host
from llmb.hosts.read_limits import read_limit
from llmb.values.command_result import CommandResult
from llmb.values.errors import TargetError, UnknownOutcomeError


class LocalHost:
    """Runs commands with bash on this machine. ``peer`` opens others."""

    def __init__(self, peer: Callable[[str], Host] | None = None) -> None:
        self._peer = peer

    def peer(self, name: str) -> Host:
        """Another machine, over SSH."""
        from llmb.hosts.ssh import SshHost  # heavy, and not needed for this machine

        return (self._peer or SshHost)(name)

    def run(self, script: str, *, timeout_s: float = 60.0) -> CommandResult:
        """Run bash, which sources the script: a script that is its standard input it would read byte by byte."""
        text = "{\n" + script + "\n} </dev/null\n"
        try:
            bash = subprocess.Popen(
                ["bash", "-c", ". /dev/stdin"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C on the terminal is for llmb alone
                env=_environment(),
            )
        except FileNotFoundError:
            raise TargetError("this machine has no bash; llmb needs it to run jobs here") from None
        except OSError as error:
            raise TargetError(f"this machine cannot start bash: {error.strerror}") from error
        with bash, _ended_on_error(bash.pid):
            try:
                out, err = bash.communicate(text.encode(), timeout_s)
            except subprocess.TimeoutExpired:
                raise UnknownOutcomeError(f"a command on this machine did not end within {timeout_s:g} s") from None
        return CommandResult(exit_code=bash.returncode, stdout=_text(out), stderr=_text(err))

    def put(self, files: Mapping[str, str], *, mode: int = 0o644) -> None:
        """Write text files, each whole or not at all."""
        for name, text in files.items():
            path = Path(name)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, text.encode(), mode)
            except OSError as error:
                raise TargetError(f"cannot write {path}: {error.strerror}") from error

    def read(self, offsets: Mapping[str, int]) -> Mapping[str, bytes]:
        """New bytes of files, as many as `read_limit` allows."""
        found, limit = {}, read_limit(len(offsets))
        for name, offset in offsets.items():
            try:
                with open(name, "rb", buffering=0) as file:
                    if os.fstat(file.fileno()).st_size > offset:
                        file.seek(offset)
                        found[name] = file.read(limit)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise TargetError(f"cannot read {name}: {error.strerror}") from error
        return found


def _environment() -> dict[str, str]:
    """This process's own, and HOME where it lacks that, as under cron or systemd; ``/`` for a user who has none."""
    if "HOME" in os.environ:
        return dict(os.environ)
    home = os.path.expanduser("~")  # Path raises where none is known
    return {**os.environ, "HOME": home if os.path.isabs(home) else "/"}


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


@contextmanager
def _ended_on_error(group: int) -> Iterator[None]:
    """A command that nobody waits for any more does not go on: nothing in its group of processes does."""
    try:
        yield
    except BaseException:  # Ctrl-C among them
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        raise
