"""Host for the machine on which llmb runs."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from llmb.files import write_atomically
from llmb.hosts.bash_settings import REMOVED_VARIABLES, UMASK
from llmb.hosts.command_log import log_command
from llmb.hosts.read_limit import read_limit
from llmb.values.errors import TargetError, UnknownOutcomeError, UnreadableFileError
from llmb.values.host import CommandResult, Host

WRITERS = 16
"""Threads that write files. They mostly wait until the disk has synced a file."""


class LocalHost:
    """The host that runs bash on this machine. ``peer`` returns the hosts of other machines."""

    def __init__(self, peer: Callable[[str], Host] | None = None) -> None:
        self._peer = peer

    def peer(self, name: str) -> Host:
        """Return another machine, reached over SSH."""
        from llmb.hosts.ssh.host import SshHost  # heavy, and not needed for this machine

        return (self._peer or SshHost)(name)

    def run(self, script: str, *, timeout_s: float = 60.0) -> CommandResult:
        """Run a bash script and return its exit code and output.

        Raise TargetError if bash does not start, and UnknownOutcomeError if the script exceeds ``timeout_s``. On any
        exception, Ctrl-C included, kill the script and its children.
        """
        log_command("this machine", script)
        # bash reads a script on standard input byte by byte, but a sourced file in blocks
        text = f"umask {UMASK}\n{{\n{script}\n}} </dev/null\n"
        try:
            bash = subprocess.Popen(
                ["bash", "-p", "-c", ". /dev/stdin"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C on the terminal reaches llmb alone
                env=_environment(),
            )
        except FileNotFoundError:
            raise TargetError("bash is not installed on this machine; llmb needs it to run jobs") from None
        except OSError as error:
            raise TargetError(f"cannot start bash on this machine: {error.strerror}") from error
        with bash:
            try:
                out, err = bash.communicate(text.encode(), timeout_s)
            except BaseException as error:  # Ctrl-C included: no abandoned command keeps running
                with suppress(ProcessLookupError):
                    os.killpg(bash.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise UnknownOutcomeError(f"a command on this machine did not end within {timeout_s:g} s") from None
                raise
        return CommandResult(
            exit_code=bash.returncode, stdout=out.decode(errors="replace"), stderr=err.decode(errors="replace")
        )

    def put(self, files: Mapping[str, str], *, mode: int = 0o644) -> None:
        """Write text files, each atomically, and create missing directories. Raise TargetError on failure."""
        for folder in dict.fromkeys(Path(name).parent for name in files):
            with _report_write_error(folder):
                _create_folder(folder)

        def write(name: str) -> None:
            with _report_write_error(Path(name)):
                write_atomically(Path(name), files[name].encode(errors="surrogateescape"), mode=mode)

        with ThreadPoolExecutor(WRITERS) as threads:
            list(threads.map(write, files))

    def read(self, offsets: Mapping[str, int]) -> Mapping[str, bytes]:
        """Return the bytes of each file from its offset on, at most `read_limit` of them.

        The result leaves out files that are missing or have no new bytes. Raise UnreadableFileError if a file cannot be
        read.
        """
        found, limit = {}, read_limit(len(offsets))
        for name, offset in offsets.items():
            try:
                with open(name, "rb", buffering=0, opener=_open_without_wait) as file:
                    if os.fstat(file.fileno()).st_size > offset:
                        file.seek(offset)
                        found[name] = file.read(limit)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise UnreadableFileError(f"cannot read {name}: {error.strerror}") from error
        return found


def _create_folder(folder: Path) -> None:
    """Create a directory and its parents. Whatever the umask is, other users cannot write there. Raise OSError."""
    if not folder.is_dir():
        _create_folder(folder.parent)
        folder.mkdir(mode=0o775, exist_ok=True)


def _open_without_wait(path: str, flags: int) -> int:
    """Open a file and return its descriptor. A pipe, whose size is 0, does not wait for a writer. Raise OSError."""
    return os.open(path, flags | os.O_NONBLOCK)


def _environment() -> dict[str, str]:
    """Return the environment of this process without the user's settings of bash.

    HOME is added if it is unset, as under cron or systemd.
    """
    home = os.path.expanduser("~")  # unlike Path.home(), does not raise if the user has no home directory
    own = {name: value for name, value in os.environ.items() if name not in REMOVED_VARIABLES}
    return {"HOME": home if os.path.isabs(home) else "/", **own}


@contextmanager
def _report_write_error(path: Path) -> Iterator[None]:
    """Turn an OSError into a TargetError that names the path."""
    try:
        yield
    except OSError as error:
        raise TargetError(f"cannot write {path}: {error.strerror}") from error
