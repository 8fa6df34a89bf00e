"""One login shell over an SSH connection that runs command after command; each has the environment of a login."""

from __future__ import annotations

import secrets
import select
import time
from importlib.resources import files

import attrs
from paramiko import SSHException, Transport

from llmb.hosts.connection_watchdog import SILENCE_S, ConnectionWatchdog, answers
from llmb.values.errors import TargetError, UnknownOutcomeError

LOGIN_TIMEOUT_S = 60.0  # for the user's profiles to be read
AFTERWARDS_S = 10  # that a command may outlive its time there before it is ended
BLOCK = 1 << 20

# Whatever shell the account has, these words mean the same to it. The profiles read nothing of ours.
COMMAND = "exec sh -c 'exec bash -lc \"exec bash -s {mark} <&3 3<&-\" 3<&0 </dev/null'"


@attrs.frozen
class Output:
    """How a command ended, and what it wrote."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class RemoteShell:
    """Raises TargetError where the account has no bash, and UnknownOutcomeError where the connection is lost."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._used_at = time.monotonic()
        self._idle = True  # nothing of an earlier command is still to come
        mark = _mark()
        with ConnectionWatchdog(transport, LOGIN_TIMEOUT_S) as watch:
            try:
                self._channel = transport.open_session()
                self._channel.exec_command(COMMAND.format(mark=mark))
                self._channel.sendall(_serve())
                self._receive(mark, watch)
            except (SSHException, OSError, EOFError) as error:
                raise TargetError(watch.told or f"no session is opened ({error})") from error

    @property
    def alive(self) -> bool:
        """Whether a command can be given to it; where it was idle, the server is asked."""
        if not self._idle or self._channel.closed or not self._transport.is_active():
            return False
        return time.monotonic() - self._used_at < SILENCE_S or answers(self._transport)

    def run(self, script: str, data: bytes, timeout_s: float) -> Output:
        """Run bash, with ``data`` on its standard input; it starts only when all of it has arrived."""
        mark = _mark()
        text = f"{{\n{script}\n}}\n".encode()
        body = f'eval "$(head -c {len(text)})"; exit $?\n'.encode() + text + data  # not read byte by byte
        head = f"{mark} {len(body)} {int(timeout_s) + AFTERWARDS_S}\n".encode()
        self._idle = False
        with ConnectionWatchdog(self._transport, timeout_s) as watch:
            try:
                self._send(head + body, watch)
                output = self._receive(mark, watch)
            except (SSHException, OSError, EOFError) as error:
                told = watch.told or f"the connection was lost ({error})"
                raise UnknownOutcomeError(f"{told}; whether the command was done there is not known") from error
        self._idle, self._used_at = True, time.monotonic()
        return output

    def _send(self, data: bytes, watch: ConnectionWatchdog) -> None:
        sent = 0
        while sent < len(data):
            sent += self._channel.send(data[sent : sent + BLOCK])
            watch.heard()

    def _receive(self, mark: str, watch: ConnectionWatchdog) -> Output:
        """What is written up to the mark. Raises EOFError where the shell ends before that."""
        stdout, stderr = _Stream(f"{mark} ".encode(), b"\n"), _Stream(mark.encode())
        channel = self._channel
        streams = ((stdout, channel.recv_ready, channel.recv), (stderr, channel.recv_stderr_ready, channel.recv_stderr))
        poll = select.poll()
        poll.register(channel.fileno(), select.POLLIN)
        while not (stdout.ended and stderr.ended):
            poll.poll()
            ended = channel.closed or channel.eof_received
            for stream, ready, receive in streams:
                while ready():
                    stream.add(receive(BLOCK))
                    watch.heard()
            if ended and not (stdout.ended and stderr.ended):
                raise EOFError((stderr.text or stdout.text).strip() or "the login shell ended")
        return Output(int(stdout.after), stdout.before, stderr.before)


class _Stream:
    """Bytes up to a mark, and what follows that up to an end."""

    def __init__(self, mark: bytes, end: bytes = b"") -> None:
        self._mark = mark
        self._end = end
        self._blocks: list[bytes] = []
        self._tail = b""
        self.ended = False
        self.before = self.after = b""

    def add(self, block: bytes) -> None:
        """The next bytes. Only the seam to those before is searched again, so that large outputs cost no more."""
        self._blocks.append(block)
        self._tail = self._tail[-len(self._mark) - 8 :] + block
        if (found := self._tail.find(self._mark)) < 0 or self._end not in self._tail[found:]:
            return
        self.before, _, after = b"".join(self._blocks).rpartition(self._mark)
        self.after = after.removesuffix(self._end)
        self.ended = True

    @property
    def text(self) -> str:
        return b"".join(self._blocks).decode("utf-8", errors="replace")


def _mark() -> str:
    return f"llmb-{secrets.token_hex(8)}"


def _serve() -> bytes:
    return files("llmb.hosts").joinpath("serve.sh").read_bytes()
