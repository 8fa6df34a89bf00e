"""A host reached over SSH: one connection, kept, and opened again when it was lost."""

from __future__ import annotations

import io
import itertools
import posixpath
import secrets
import shlex
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from llmb.hookspecs import Host
from llmb.hosts.read_limits import read_limit
from llmb.hosts.remote_shell import Output, RemoteShell
from llmb.hosts.ssh_connection import Connection, connect
from llmb.scripts.resources import resource_text
from llmb.values.command_result import CommandResult
from llmb.values.errors import TargetError, UnknownOutcomeError

SLOWEST_BYTES_PER_S = 100_000  # of a network on which moving many bytes is still waited for
SPARE_S = 60.0  # besides the time that the bytes take


class SshHost:
    """Runs commands with bash on ``host``, ``user@host`` or ``user@host:port``, as ``~/.ssh/config`` knows them.

    ``peer`` opens others.
    """

    def __init__(self, host: str, peer: Callable[[str], Host] | None = None) -> None:
        self._host = host
        self._peer = peer
        self._connection: Connection | None = None
        self._shell: RemoteShell | None = None

    def close(self) -> None:
        """End the connection; the next command opens it again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._shell = None

    def peer(self, name: str) -> Host:
        """Another machine, over a connection of its own from here."""
        return (self._peer or SshHost)(name)

    def run(self, script: str, *, timeout_s: float = 60.0) -> CommandResult:
        """Run bash. What is cut off on its way does not start; what is not heard of is unknown, never failed."""
        output = self._run(f"{{\n{script}\n}} </dev/null", b"", timeout_s)
        return CommandResult(exit_code=output.exit_code, stdout=_text(output.stdout), stderr=_text(output.stderr))

    def put(self, files: Mapping[str, str], *, mode: int = 0o644) -> None:
        """Write text files in one stream, each whole or not at all, with their mode from the first byte on."""
        if not files:
            return
        token = secrets.token_hex(4)
        archive = _archive(files, mode, token)
        script = f"{_function('place.sh')}\n{shlex.join(['place', token, *files])}"
        output = self._run(script, archive, SPARE_S + len(archive) / SLOWEST_BYTES_PER_S)
        if output.exit_code:
            raise TargetError(f"cannot write on {self._host}: {_first_line(output)}")

    def read(self, offsets: Mapping[str, int]) -> Mapping[str, bytes]:
        """New bytes of files, all asked for in one command."""
        if not offsets:
            return {}
        limit = read_limit(len(offsets))
        words = itertools.chain.from_iterable((str(offset), path) for path, offset in offsets.items())
        script = f"{_function('read_new.sh')}\n{shlex.join(['read_new', str(limit), *words])}"
        output = self._run(script, b"", SPARE_S + limit * len(offsets) / SLOWEST_BYTES_PER_S)
        if output.exit_code or output.stderr.strip():
            raise TargetError(f"cannot read on {self._host}: {_first_line(output)}")
        paths = list(offsets)
        return {paths[number]: data for number, data in self._blocks(output.stdout)}

    def _blocks(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        start = 0
        while start < len(data):
            end = data.find(b"\n", start)
            number, size = map(int, data[start:end].split())
            start, end = end + 1, end + 1 + size
            if data[end : end + 1] != b"\n":
                raise TargetError(f"a file on {self._host} became shorter while it was read")
            yield number, data[start:end]
            start = end + 1

    def _run(self, script: str, data: bytes, timeout_s: float) -> Output:
        """Raises TargetError that names the host."""
        shell = self._shell_there()
        try:
            return shell.run(script, data, timeout_s)
        except UnknownOutcomeError as error:
            self.close()
            raise UnknownOutcomeError(f"{self._host}: {error}") from error

    def _shell_there(self) -> RemoteShell:
        """Nothing has been asked yet, so a connection that was lost is simply made again."""
        if self._shell is not None and self._shell.alive:
            return self._shell
        self.close()
        self._connection = connect(self._host)
        try:
            self._shell = RemoteShell(self._connection.transport)
        except TargetError as error:
            self.close()
            raise TargetError(f"{self._host} runs no bash for this user: {error}") from error
        return self._shell


def _function(name: str) -> str:
    return resource_text("llmb.hosts", name)


def _archive(files: Mapping[str, str], mode: int, token: str) -> bytes:
    """A tar archive of the files under their partial names."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as archive:
        for name, text in files.items():
            data = text.encode()
            folder, base = posixpath.split(name)
            member = tarfile.TarInfo(f"{folder}/.{base}.{token}.partial")
            member.size, member.mode, member.mtime = len(data), mode, time.time()
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _first_line(output: Output) -> str:
    lines: Iterable[str] = _text(output.stderr or output.stdout).splitlines()
    return next((line.strip() for line in lines if line.strip()), f"exit status {output.exit_code}")
