"""The hosts of targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llmb.hookspecs import Host
from llmb.hosts.local import LocalHost
from llmb.values.run import Target

if TYPE_CHECKING:
    from llmb.hosts.ssh import SshHost


class Hosts:
    """The machines that one session speaks to, each over one connection however many targets are there."""

    def __init__(self) -> None:
        self._remote: dict[str, SshHost] = {}

    def open(self, target: Target[Any]) -> Host:
        """The target's host; nothing is connected before something is asked there."""
        return LocalHost(self.peer) if target.host is None else self.peer(target.host)

    def peer(self, name: str) -> SshHost:
        """The machine of this name."""
        from llmb.hosts.ssh import SshHost  # heavy, and not needed for this machine

        return self._remote.setdefault(name, SshHost(name, self.peer))

    def close(self) -> None:
        """End all connections; whoever asks again opens them again."""
        for host in self._remote.values():
            host.close()
