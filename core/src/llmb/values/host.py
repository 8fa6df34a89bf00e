"""The host of a target: the machine that runs its commands."""

from __future__ import annotations  # `Host.peer` returns a Host

from collections.abc import Mapping
from typing import Protocol

import attrs


@attrs.frozen(kw_only=True)
class CommandResult:
    """Exit code and output of a bash script that ran on a host."""

    exit_code: int
    stdout: str
    stderr: str = ""


class Host(Protocol):
    """The machine that runs the commands of a target: this machine, or a machine reached over SSH.

    One thread uses a host at a time: over SSH, all its commands share one connection.
    """

    def run(self, script: str, *, timeout_s: float = 60.0) -> CommandResult:
        """Run a bash script on the host. A non-zero exit code is returned, not raised.

        Raise TargetError if the host cannot be reached: the script did not run. Raise UnknownOutcomeError, a
        TargetError, if the script may have run: it exceeded ``timeout_s``, or the connection was lost.
        """

    def put(self, files: Mapping[str, str], *, mode: int = 0o644) -> None:
        """Write text files on the host, each atomically. Missing directories are created."""

    def read(self, offsets: Mapping[str, int]) -> Mapping[str, bytes]:
        """Read many files from an offset on, in one command and at most a few MiB of each file.

        The result leaves out files that do not exist or have no new bytes.
        """

    def peer(self, name: str) -> Host:
        """Return another machine, named as in the SSH configuration of the machine that runs llmb.

        For schedulers that start the processes of a job on several machines themselves. llmb connects to the peer when
        it is first used, and keeps the connection as long as that of this host.
        """
