"""The transport of an SSH connection, and the reason why a server's algorithms are not those of llmb."""

import socket
from typing import Any

from paramiko import Transport

from llmb.hosts.ssh.authentication import ON_THE_HOST
from llmb.hosts.ssh.known_hosts import KnownHost

FIRST_NAME = "@libssh.org"  # the end of the first name of a key exchange, which has got a shorter one since

NEEDED = {
    "no acceptable kex algorithm": ("key exchange", "KexAlgorithms", "curve25519-sha256"),
    "no acceptable ciphers": ("cipher", "Ciphers", "aes256-gcm@openssh.com"),
    "no acceptable macs": ("MAC", "MACs", "hmac-sha2-256-etm@openssh.com"),
    "no acceptable host key": ("type of host key", "HostKeyAlgorithms", "ssh-ed25519"),
}
"""For each error of paramiko what the server lacks, the setting of sshd_config, and a value that both support."""


class _Transport(Transport):
    """Transport that knows ``curve25519-sha256`` by this name too, not only as ``curve25519-sha256@libssh.org``."""

    _kex_info = {  # noqa: RUF012  # as in the base class
        **Transport._kex_info,  # type: ignore[attr-defined]  # the stubs lack it
        **{name.removesuffix(FIRST_NAME): kex for name, kex in Transport._kex_info.items()},  # type: ignore[attr-defined]  # the same
    }
    _preferred_kex = (
        *Transport._preferred_kex,  # type: ignore[attr-defined]  # the same
        *(name.removesuffix(FIRST_NAME) for name in Transport._preferred_kex if name.endswith(FIRST_NAME)),  # type: ignore[attr-defined]  # the same
    )


def create_transport(sock: Any, known: KnownHost, **more: Any) -> Transport:
    """Return a transport that prefers host keys of the known types and sends small packets immediately."""
    if isinstance(sock, socket.socket) and sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = _Transport(sock, **more)
    options = transport.get_security_options()
    first = [kind for kind in known.key_types if kind in options.key_types]
    options.key_types = [*first, *(kind for kind in options.key_types if kind not in first)]
    return transport


def describe_incompatibility(error: str) -> str:
    """Return what the server lacks and a remedy if a message of paramiko is about algorithms, else ""."""
    for words, (what, setting, value) in NEEDED.items():
        if words in error:
            return (
                f"llmb supports no {what} that the server offers; have the site add {value} to {setting} in its "
                f"sshd_config, or {ON_THE_HOST}"
            )
    return ""
