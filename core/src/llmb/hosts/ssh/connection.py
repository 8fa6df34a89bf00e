"""An SSH connection like that of ``ssh HOST``: its settings, jump hosts, host key check, and one-line errors."""

import logging
import os
import re
import shlex
import socket
import subprocess
import tempfile
from contextlib import suppress
from typing import IO, Any

import fabric
from paramiko import ChannelException, SSHException
from paramiko.ssh_exception import NoValidConnectionsError

from llmb.hosts.ssh.authentication import PublicKeys
from llmb.hosts.ssh.known_hosts import KnownHost
from llmb.hosts.ssh.read_config_files import read_ssh_config, seconds
from llmb.hosts.ssh.timeouts import CONNECT_TIMEOUT_S, KEEPALIVE_S
from llmb.hosts.ssh.transport import create_transport, describe_incompatibility
from llmb.values.errors import TargetError, UnreachableError
from llmb.values.texts.error_text import invalid_value
from llmb.values.types.words_and_addresses import HOST, is_host

IPV6_ADDRESS = re.compile(r"(?:(.+)@)?\[(.+)\](?::(\d+))?")  # of ProxyJump, which fabric does not split
MESSAGE_BYTES = 1000  # the most that is read of a proxy command's last message


def connect(host: str) -> "Connection":
    """Connect to ``host``, ``user@host`` or ``user@host:port``, through its jump hosts.

    Raise TargetError, which names the host or jump host that failed and the reason, if that is impossible.
    """
    if not is_host(host):  # ssh_config puts the name into the command of ProxyCommand
        raise TargetError(f"{invalid_value(host)} for a host; expected {HOST}")
    log = logging.getLogger("paramiko")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # otherwise Python prints paramiko's tracebacks on standard error
    config = fabric.Config(ssh_config=read_ssh_config(), lazy=True)
    try:
        connection = Connection(host, config=config, connect_timeout=CONNECT_TIMEOUT_S)  # `open` reads the host's own
    except (ValueError, SSHException) as error:  # an invalid port, or a name that cannot be made canonical
        raise TargetError(f"cannot connect to {host}: invalid setting in ~/.ssh/config: {error}") from error
    except RecursionError:
        raise TargetError(f"cannot connect to {host}: its jump hosts in ~/.ssh/config form a loop") from None
    connection.open()
    return connection


class Connection(fabric.Connection):  # type: ignore[misc]  # fabric ships no types
    """A fabric connection with verified host keys, OpenSSH's rules for jump hosts, and a timeout for every step."""

    _proxy_log: IO[bytes] | None = None

    def __init__(self, host: str, **options: Any) -> None:
        super().__init__(host, **options)
        given = {key: options[key] for key in ("user", "port") if key in options}
        self._set("_written", {**self.derive_shorthand(host), **given})  # plain assignment sets a key of the config

    def open(self) -> None:
        """Connect. Raise TargetError, which names this host or the jump host that failed, if that is impossible."""
        try:
            known = KnownHost.find(self.host, self.port, self.ssh_config)
            timeout_s = seconds(self.ssh_config.get("connecttimeout", "none")) or CONNECT_TIMEOUT_S
            keepalive_s = seconds(self.ssh_config.get("serveraliveinterval", str(KEEPALIVE_S)))
        except ValueError as error:
            raise _NotConnectedError(
                f"cannot connect to {self.original_host}: invalid setting for ssh: {error}"
            ) from error
        self.client.set_missing_host_key_policy(known)
        self.connect_timeout: int = timeout_s
        keys = PublicKeys(self.ssh_config, self.user, self.login_address)  # type: ignore[abstract]  # get_sources: unused
        self.connect_kwargs = {
            "auth_strategy": keys,
            "banner_timeout": timeout_s,
            "auth_timeout": CONNECT_TIMEOUT_S,
            "channel_timeout": CONNECT_TIMEOUT_S,
            "transport_factory": lambda sock, **more: create_transport(sock, known, **more),
        }
        try:
            super().open()
        except (TargetError, OSError, SSHException, EOFError, ValueError) as error:
            self.close()
            raise self._connection_error(error) from error
        finally:
            if self._proxy_log:
                self._proxy_log.close()
                self._proxy_log = None
        self.transport.set_keepalive(keepalive_s)

    def close(self) -> None:
        """Close the connection, and those to its jump hosts."""
        self.client.close()
        if isinstance(self.gateway, Connection):
            self.gateway.close()

    def get_gateway(self) -> "Connection | str | None":
        """Return the last jump host, the proxy command, or None if the host is reached directly."""
        jumps = self.ssh_config.get("proxyjump", "none")
        keys = [each for each in self.ssh_config if each in ("proxyjump", "proxycommand")]  # the first one counts
        if jumps.lower() == "none" or keys[0] == "proxycommand":
            command: str | None = self.ssh_config.get("proxycommand")
            return command
        gateway: Connection | None = None
        for jump in jumps.split(","):
            jump = jump.strip().removeprefix("ssh://")
            address = IPV6_ADDRESS.fullmatch(jump)
            if (address[2] if address else self.derive_shorthand(jump)["host"]) == self.original_host:
                return None  # "Host *" may set a jump host for all hosts, the jump host included
            # not a clone of self.config, which would follow paramiko's rules
            config = fabric.Config(ssh_config=self.config.base_ssh_config, lazy=True)
            options = {"config": config, "gateway": gateway, "connect_timeout": CONNECT_TIMEOUT_S}
            if address:
                user, jump, port = address.groups()
                options |= {"user": user, "port": int(port) if port else None}
            gateway = Connection(jump, **options)
        return gateway

    def open_gateway(self) -> Any:
        """Return a socket or channel to the host through its gateway.

        Raise TargetError if the jump host cannot be reached or cannot reach the host.
        """
        if isinstance(self.gateway, str):
            return self._start_proxy(self.gateway)
        self.gateway.open()
        try:
            return self.gateway.transport.open_channel("direct-tcpip", (self.host, self.port), ("", 0))
        except ChannelException as error:
            raise UnreachableError(
                f"the jump host {self.gateway.original_host} cannot reach it: {error.text}"
            ) from error

    def _start_proxy(self, command: str) -> socket.socket:
        """Start a proxy command and return a socket connected to its standard input and output.

        The command ends when the socket is closed. Its standard error goes to a file that has no name, or nowhere if
        such a file cannot be created.
        """
        with suppress(OSError):
            self._proxy_log = tempfile.TemporaryFile()  # noqa: SIM115  # `open` closes it
        ours, theirs = socket.socketpair()
        with theirs:
            subprocess.run(
                ["/bin/sh", "-c", f"exec 3<&0; (exec {command}) <&3 3<&- &"],  # from the user's own ~/.ssh/config
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._proxy_log or subprocess.DEVNULL,
                start_new_session=True,
                check=False,
            )
        return ours

    @property
    def label(self) -> str:
        """The name that the user gave, followed by the address if that differs."""
        if self.host == self.original_host and self.port == 22:
            return str(self.original_host)
        return f"{self.original_host} ({self.host} port {self.port})"

    @property
    def login_address(self) -> str:
        """The words for ``ssh`` and ``ssh-copy-id`` that name the host as the user did.

        ~/.ssh/config then applies to it.
        """
        written = self._written
        port = f"-p {written['port']} " if written["port"] else ""
        user = f"{written['user']}@" if written["user"] else ""
        return port + shlex.quote(f"{user}{written['host']}")

    def _connection_error(self, error: Exception) -> TargetError:
        if isinstance(error, _NotConnectedError):
            return error  # from a jump host
        reason = str(error) if isinstance(error, TargetError) else _reason(error, self.connect_timeout)
        proxy = f" (through ProxyCommand {self.gateway})" if isinstance(self.gateway, str) else ""
        if printed := self._last_proxy_message():
            reason += f"; the command printed: {printed}"
        rejected = isinstance(error, TargetError) and not isinstance(error, UnreachableError)
        kind = _NotConnectedError if rejected else _NoRouteError
        return kind(f"cannot connect to {self.label}{proxy}: {reason}")

    def _last_proxy_message(self) -> str:
        """Return the last line that the proxy command printed on standard error, or ""."""
        if not self._proxy_log:
            return ""
        end = self._proxy_log.seek(0, os.SEEK_END)
        self._proxy_log.seek(max(0, end - MESSAGE_BYTES))
        lines = self._proxy_log.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


class _NotConnectedError(TargetError):
    """A TargetError whose message already names the host."""


class _NoRouteError(_NotConnectedError, UnreachableError):
    """The network or the server failed, not the login."""


def _reason(error: Exception, timeout_s: int) -> str:
    if isinstance(error, NoValidConnectionsError):
        error = next(iter(error.errors.values()))
    if isinstance(error, socket.gaierror):
        return "unknown host name; check target.host and the hosts in ~/.ssh/config"
    if isinstance(error, TimeoutError):
        return f"no response within {timeout_s} s"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused; no server listens on this port"
    if isinstance(error, EOFError | ConnectionError):
        return "the server closed the connection before the login was complete"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error) or type(error).__name__
    if any(words in text for words in ("banner", "protocol version", "No existing session")):  # races in paramiko
        return "the server sent no SSH greeting; it is overloaded, or it is no SSH server"
    return describe_incompatibility(text) or text
