"""The hosts of a session: at most one SSH connection per machine, shared by all targets there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from llmb.hosts.local_host import LocalHost
from llmb.values.host import Host
from llmb.values.run import Target

if TYPE_CHECKING:
    from llmb.hosts.ssh.host import SshHost


class HostConnections:
    """Hosts by name. A connection is opened when its host runs the first command."""

    def __init__(self) -> None:
        self._remote: dict[str, SshHost] = {}

    def host_of(self, target: Target[Any]) -> Host:
        """Return the host of a target: this machine, or the machine that ``target.host`` names."""
        return LocalHost(self.peer) if target.host is None else self.peer(target.host)

    def peer(self, name: str) -> "SshHost":
        """Return the machine of this name, reached over SSH."""
        from llmb.hosts.ssh.host import SshHost  # heavy, and not needed for this machine

        return self._remote.setdefault(name, SshHost(name, self.peer))

    @contextmanager
    def closed_on_error(self) -> Iterator[Self]:
        """Close all connections if the block fails."""
        try:
            yield self
        except BaseException:  # Ctrl-C too
            self.close()
            raise

    def close(self) -> None:
        """Close all connections. A host that is used afterwards connects again."""
        for host in self._remote.values():
            host.close()
