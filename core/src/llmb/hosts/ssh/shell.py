"""One login shell over an SSH connection that runs many commands, each in the environment of a login.

The shell runs shell.sh, which reads commands from its standard input and marks the end of their output.
"""

import secrets
import select
import time
from contextlib import suppress

import attrs
from paramiko import ChannelException, SSHException, Transport

from llmb.files import resource_text
from llmb.hosts.bash_settings import REMOVED_VARIABLES, UMASK
from llmb.hosts.ssh.connection_watchdog import ConnectionWatchdog, responds
from llmb.hosts.ssh.timeouts import GRACE_S, LOGIN_TIMEOUT_S, SILENCE_S
from llmb.values.errors import UnknownOutcomeError, UnreachableError

BLOCK_BYTES = 1 << 20

SHELL_ENDED = 75  # exit code of shell.sh

# The profiles can neither consume our standard input nor print among the output of commands, also with a process that
# they leave in the background. If they prevent bash from running shell.sh, they run again, and print the reason. Every
# login shell parses these words in the same way: csh reads no second line, and expands exclamation marks.
REMOVALS = " ".join(["env", *(f"-u {name}" for name in REMOVED_VARIABLES)])  # bash cannot unset SHELLOPTS itself
RUN_SHELL = f"exec {REMOVALS} bash -p -s {{mark}} {UMASK} <&3 >&7 2>&8 3<&- 7>&- 8>&-"
LOGIN = f'bash -lc "{RUN_SHELL}" >/dev/null 2>&1; [ $? -eq {SHELL_ENDED} ] || bash -lc : >&8 2>&8'
COMMAND = f"exec sh -c 'exec 3<&0 7>&1 8>&2 </dev/null; {LOGIN}'"


@attrs.frozen
class Output:
    """Exit code and output of a command."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class LoginShellError(UnreachableError):
    """The server started a login shell, which did not run bash."""


class ConnectionLostError(UnreachableError):
    """The connection ended before bash ran."""


class SshShell:
    """A login shell. Creating one starts the shell.

    Raise LoginShellError if the account cannot run bash, ConnectionLostError if the connection ends before bash runs,
    and UnreachableError if the server opens no session or does not respond.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._used_at = time.monotonic()
        self._idle = True  # no output of an earlier command is outstanding
        mark = _mark()
        with ConnectionWatchdog(transport, LOGIN_TIMEOUT_S) as watchdog:
            try:
                self._channel = transport.open_session()
                self._channel.exec_command(COMMAND.format(mark=mark))
            except ChannelException as error:  # the connection is not lost, so another login is refused too
                raise UnreachableError(f"the server opened no session ({error})") from error
            except (SSHException, OSError, EOFError) as error:
                reason = f"the server opened no session ({str(error) or 'the connection was lost'})"
                raise _connection_error(watchdog, reason) from error
            try:
                with suppress(OSError):  # a shell that has ended may have printed why
                    self._channel.sendall(resource_text("llmb.hosts.ssh", "shell.sh").encode())
                self._receive(mark, watchdog, login=True)
            except (SSHException, OSError, EOFError) as error:
                if not (watchdog.expired or self._channel.eof_received):
                    raise _connection_error(watchdog, "the connection was lost") from error
                raise LoginShellError(watchdog.reason or f"the login shell ended{_last_line(str(error))}") from error

    @property
    def alive(self) -> bool:
        """True if the shell can take a command. After a while without use, this probes the server."""
        if not self._idle or self._channel.closed or not self._transport.is_active():
            return False
        return time.monotonic() - self._used_at < SILENCE_S or responds(self._transport)

    def run(self, script: str, data: bytes, timeout_s: float) -> Output:
        """Run a bash script with ``data`` on its standard input. It starts only after all of it has arrived.

        Raise UnknownOutcomeError if the connection is lost or ``timeout_s`` passes before the exit code arrives.
        """
        mark = _mark()
        text = f"{{\n{script}\n}}\n".encode()
        # bash would read the text byte by byte; shell.sh keeps standard error on descriptor 3
        body = f'exec 2>&3 3>&-; eval "$(head -c {len(text)})"; exit $?\n'.encode() + text + data
        head = f"{mark} {len(body)} {int(timeout_s) + GRACE_S}\n".encode()
        self._idle = False
        with ConnectionWatchdog(self._transport, timeout_s) as watchdog:
            try:
                self._send(head + body, watchdog)
                output = self._receive(mark, watchdog)
            except (SSHException, OSError, EOFError) as error:
                reason = watchdog.reason or f"the connection was lost ({error})"
                raise UnknownOutcomeError(f"{reason}; it is unknown whether the command ran") from error
        self._idle, self._used_at = True, time.monotonic()
        return output

    def _send(self, data: bytes, watchdog: ConnectionWatchdog) -> None:
        sent = 0
        while sent < len(data):
            sent += self._channel.send(data[sent : sent + BLOCK_BYTES])
            watchdog.report_activity()

    def _receive(self, mark: str, watchdog: ConnectionWatchdog, *, login: bool = False) -> Output:
        """Return the output up to the mark. Raise EOFError if the shell ends before the mark.

        Only at the ``login`` is standard output a message. That of a command may be a log, with secrets in it.
        """
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
                    stream.add(receive(BLOCK_BYTES))
                    watchdog.report_activity()
            if ended and not (stdout.ended and stderr.ended):
                message = stderr.text or (stdout.text if login else "")
                raise EOFError(message.strip() or ("" if login else "the login shell ended"))
        return Output(int(stdout.after), stdout.before, stderr.before)


class _Stream:
    """The bytes before a mark, and the bytes between the mark and an end."""

    def __init__(self, mark: bytes, end: bytes = b"") -> None:
        self._mark = mark
        self._end = end
        self._blocks: list[bytes] = []
        self._tail = b""
        self.ended = False
        self.before = self.after = b""

    def add(self, block: bytes) -> None:
        """Append bytes and search them for the mark. Of earlier bytes only the last few are searched again."""
        self._blocks.append(block)
        self._tail = self._tail[-len(self._mark) - 8 :] + block
        if (found := self._tail.find(self._mark)) < 0 or self._end not in self._tail[found:]:
            return
        self.before, _, after = b"".join(self._blocks).rpartition(self._mark)
        self.after = after.removesuffix(self._end)
        self.ended = True

    @property
    def text(self) -> str:
        """The bytes as text, for an error message."""
        return b"".join(self._blocks).decode("utf-8", errors="replace")


def _connection_error(watchdog: ConnectionWatchdog, reason: str) -> UnreachableError:
    """Return the error of a connection that ended, or that did not respond in time."""
    return UnreachableError(watchdog.reason) if watchdog.reason else ConnectionLostError(reason)


def _last_line(printed: str) -> str:
    """Return the last line of what a login printed, for an error message, or "" if it printed nothing."""
    return f" ({printed.splitlines()[-1].strip()})" if printed else ""


def _mark() -> str:
    return f"llmb-{secrets.token_hex(8)}"
