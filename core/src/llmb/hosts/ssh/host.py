"""A host reached over SSH, through one connection that is opened on demand and again after it is lost."""

from collections.abc import Callable, Mapping

from llmb.hosts.command_log import log_command
from llmb.hosts.read_limit import read_limit
from llmb.hosts.ssh.connection import Connection, connect
from llmb.hosts.ssh.file_transfer import parse_parts, read_command, write_command
from llmb.hosts.ssh.shell import ConnectionLostError, LoginShellError, Output, SshShell
from llmb.hosts.ssh.timeouts import SLOWEST_BYTES_PER_S, SPARE_S
from llmb.values.errors import TargetError, UnknownOutcomeError, UnreachableError, UnreadableFileError
from llmb.values.host import CommandResult, Host


class SshHost:
    """The host that runs bash on another machine.

    ``host`` is ``host``, ``user@host`` or ``user@host:port``, as in ``~/.ssh/config``. ``peer`` returns the hosts of
    other machines.
    """

    def __init__(self, host: str, peer: Callable[[str], Host] | None = None) -> None:
        self._host = host
        self._peer = peer
        self._connection: Connection | None = None
        self._shell: SshShell | None = None
        self._responded = False  # True once a connection was complete

    def close(self) -> None:
        """Close the connection. The next command opens it again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._shell = None

    def peer(self, name: str) -> Host:
        """Return another machine, reached over its own connection from this machine."""
        return (self._peer or SshHost)(name)

    def run(self, script: str, *, timeout_s: float = 60.0) -> CommandResult:
        """Run a bash script and return its exit code and output.

        A script that does not arrive completely is not started. Raise TargetError if the host cannot be reached, and
        UnknownOutcomeError if the connection is lost, or the script exceeds ``timeout_s``, before the exit code
        arrives.
        """
        log_command(self._host, script)
        output = self._run(f"{{\n{script}\n}} </dev/null", timeout_s)
        stdout, stderr = output.stdout.decode(errors="replace"), output.stderr.decode(errors="replace")
        return CommandResult(exit_code=output.exit_code, stdout=stdout, stderr=stderr)

    def put(self, files: Mapping[str, str], *, mode: int = 0o644) -> None:
        """Write text files in one command, each atomically. Raise TargetError if a file cannot be written."""
        if not files:
            return
        script, archive = write_command(files, mode)
        output = self._run(script, SPARE_S + len(archive) / SLOWEST_BYTES_PER_S, archive)
        if output.exit_code:
            raise TargetError(f"cannot write on {self._host}: {_first_line(output)}")

    def read(self, offsets: Mapping[str, int]) -> Mapping[str, bytes]:
        """Return the bytes of each file from its offset on, at most `read_limit` of them, with one command.

        The result leaves out files that are missing or have no new bytes. Raise UnreadableFileError if a file cannot be
        read, and TargetError if the host cannot be reached.
        """
        if not offsets:
            return {}
        limit = read_limit(len(offsets))
        output = self._run(read_command(offsets, limit), SPARE_S + limit * len(offsets) / SLOWEST_BYTES_PER_S)
        if output.exit_code or output.stderr.strip():
            raise UnreadableFileError(f"cannot read on {self._host}: {_first_line(output)}")
        paths = list(offsets)
        try:
            return {paths[number]: data for number, data in parse_parts(output.stdout)}
        except TargetError as error:
            raise UnreadableFileError(f"cannot read on {self._host}: {error}") from error

    def _run(self, script: str, timeout_s: float, data: bytes = b"") -> Output:
        """Run a script. On UnknownOutcomeError, close the connection, and name the host in the error."""
        shell = self._open_shell()
        try:
            return shell.run(script, data, timeout_s)
        except UnknownOutcomeError as error:
            self.close()
            raise UnknownOutcomeError(f"{self._host}: {error}") from error

    def _open_shell(self) -> SshShell:
        """Return the shell if it is alive, else connect again. Nothing was sent yet, so reconnecting is safe."""
        if self._shell is not None and self._shell.alive:
            return self._shell
        self.close()
        try:
            self._shell = self._start_shell()
        except UnreachableError as error:
            if self._responded:
                raise
            raise TargetError(str(error)) from error  # this is no cut: the host has not responded yet
        self._responded = True
        return self._shell

    def _start_shell(self) -> SshShell:
        """Connect and start a login shell, once more if the connection is lost before bash runs."""
        try:
            return self._log_in()
        except ConnectionLostError:
            return self._log_in()

    def _log_in(self) -> SshShell:
        """Connect and start a login shell. If that is impossible, close the connection and raise TargetError."""
        self._connection = connection = connect(self._host)
        try:
            return SshShell(connection.transport)
        except UnreachableError as error:
            self.close()
            advice = _profile_advice(connection) if isinstance(error, LoginShellError) else ""
            raise type(error)(f"cannot start bash on {self._host} for this user: {error}{advice}") from error


def _profile_advice(connection: Connection) -> str:
    """Return what may prevent a login from running bash, and the command that checks it."""
    check = f"`ssh {connection.login_address} 'bash -lc date'` must print the date"
    return f"; a profile there, such as ~/.bash_profile, may exit, wait or start another shell: {check}"


def _first_line(output: Output) -> str:
    lines = (output.stderr or output.stdout).decode(errors="replace").splitlines()
    return next((line.strip() for line in lines if line.strip()), f"exit code {output.exit_code}")
