"""An open SSH connection as ``ssh HOST`` would make it, or one line that says why there is none."""

from __future__ import annotations

import logging
import socket
import subprocess
from typing import Any

import fabric
from paramiko import ChannelException, SSHException, Transport
from paramiko.ssh_exception import NoValidConnectionsError

from llmb.hosts.known_hosts import Judge, KnownHost
from llmb.hosts.ssh_config import read_ssh_config, seconds
from llmb.hosts.ssh_keys import Keys
from llmb.values.errors import TargetError

CONNECT_TIMEOUT_S = 15  # for each of: a connection, the server's greeting, the login
KEEPALIVE_S = 30


def connect(host: str) -> Connection:
    """Connect to ``host``, ``user@host`` or ``user@host:port``, by way of its jump hosts. Raises TargetError."""
    log = logging.getLogger("paramiko")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # else Python prints its tracebacks on standard error
    config = fabric.Config(
        ssh_config=read_ssh_config(), lazy=True, overrides={"authentication": {"strategy_class": Keys}}
    )
    try:
        connection = Connection(host, config=config, connect_timeout=CONNECT_TIMEOUT_S)  # until `open` reads its own
    except (ValueError, SSHException) as error:  # a port that is no number, a name that cannot be made canonical
        raise TargetError(f"cannot connect to {host}: its settings in ~/.ssh/config are wrong: {error}") from error
    connection.open()
    return connection


class Connection(fabric.Connection):  # type: ignore[misc]  # fabric ships no types
    """fabric's, with host keys checked, jump hosts as OpenSSH takes them, and a deadline for every step."""

    def open(self) -> None:
        """Connect. Raises TargetError that names this host, or the jump host that failed."""
        try:
            known = KnownHost.find(self.host, self.port, self.ssh_config)
            timeout_s = seconds(self.ssh_config.get("connecttimeout", "0")) or CONNECT_TIMEOUT_S
        except ValueError as error:
            place = self.original_host
            raise _NotConnectedError(f"cannot connect to {place}: its settings for ssh are wrong: {error}") from error
        self.client.set_missing_host_key_policy(Judge(known))
        self.connect_timeout: int = timeout_s
        self.connect_kwargs = {
            "banner_timeout": timeout_s,
            "auth_timeout": CONNECT_TIMEOUT_S,
            "channel_timeout": CONNECT_TIMEOUT_S,
            "transport_factory": lambda sock, **more: _transport(sock, known, **more),
        }
        try:
            super().open()
        except (TargetError, OSError, SSHException, EOFError, ValueError) as error:
            self.close()
            raise self._told(error) from error
        self.transport.set_keepalive(KEEPALIVE_S)

    def close(self) -> None:
        """End it, and those to its jump hosts."""
        self.client.close()
        if isinstance(self.gateway, Connection):
            self.gateway.close()

    def get_gateway(self) -> Connection | str | None:
        """The last jump host, or the command that stands for a network connection; null for neither."""
        jumps = self.ssh_config.get("proxyjump", "none")
        if jumps.lower() == "none":
            command: str | None = self.ssh_config.get("proxycommand")
            return command
        gateway: Connection | None = None
        for jump in jumps.split(","):
            jump = jump.strip().removeprefix("ssh://")
            if self.derive_shorthand(jump)["host"] == self.original_host:
                return None  # "Host *" may name a jump host for all, itself among them
            gateway = Connection(jump, config=self.config.clone(), gateway=gateway, connect_timeout=CONNECT_TIMEOUT_S)
        return gateway

    def open_gateway(self) -> Any:
        """The socket to speak through. Raises TargetError that names the jump host where that fails."""
        if isinstance(self.gateway, str):
            return _through(self.gateway)
        self.gateway.open()
        try:
            return self.gateway.transport.open_channel("direct-tcpip", (self.host, self.port), ("", 0))
        except ChannelException as error:
            raise TargetError(f"the jump host {self.gateway.original_host} cannot reach it: {error.text}") from error

    @property
    def place(self) -> str:
        """Where it leads, for messages: the name that the user gave, and the address behind it where that differs."""
        address = f"{self.host} port {self.port}"
        return (
            self.original_host
            if self.host == self.original_host and self.port == 22
            else f"{self.original_host} ({address})"
        )

    def _told(self, error: Exception) -> TargetError:
        if isinstance(error, _NotConnectedError):
            return error  # of a jump host
        reason = str(error) if isinstance(error, TargetError) else _reason(error, self.connect_timeout)
        by = f" (by way of ProxyCommand {self.gateway})" if isinstance(self.gateway, str) else ""
        return _NotConnectedError(f"cannot connect to {self.place}{by}: {reason}")


class _NotConnectedError(TargetError):
    """Says already which host it is about."""


def _reason(error: Exception, timeout_s: int) -> str:
    if isinstance(error, NoValidConnectionsError):
        error = next(iter(error.errors.values()))
    if isinstance(error, socket.gaierror):
        return "there is no host of that name; see target.host, and the names in ~/.ssh/config"
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_s} s"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there (connection refused)"
    if isinstance(error, EOFError | ConnectionError):
        return "the server closed the connection before the login was done"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error) or type(error).__name__
    if any(words in text for words in ("banner", "protocol version", "No existing session")):  # paramiko's, by chance
        return "it is silent, or what answers there is no SSH server"
    return text


def _transport(sock: Any, known: KnownHost, **more: Any) -> Transport:
    """One that asks the server for a key of a known kind, and sends small packets at once."""
    if isinstance(sock, socket.socket) and sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = Transport(sock, **more)
    options = transport.get_security_options()
    first = [kind for kind in known.key_types if kind in options.key_types]
    options.key_types = [*first, *(kind for kind in options.key_types if kind not in first)]
    return transport


def _through(command: str) -> socket.socket:
    """A socket whose other end is the command's standard input and output; the command ends when it is closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        subprocess.run(
            ["/bin/sh", "-c", f"exec 3<&0; (exec {command}) <&3 3<&- &"],  # the user's own words from ~/.ssh/config
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        )
    return ours
