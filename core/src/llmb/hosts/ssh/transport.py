"""The transport of an SSH connection, and the reason why a server's algorithms are not those of llmb."""

import socket
from collections.abc import Mapping
from typing import Any, ClassVar

from paramiko import Transport

from llmb.hosts.ssh.authentication import ON_THE_HOST
from llmb.hosts.ssh.known_hosts import KnownHost

CURVE25519 = "curve25519-sha256"
"""The key exchange of RFC 8731. paramiko knows it only by its first name, which ends with ``@libssh.org``."""

MISSING_ALGORITHMS = {
    "no acceptable kex algorithm": ("key exchange", "KexAlgorithms", CURVE25519),
    "no acceptable ciphers": ("cipher", "Ciphers", "aes256-gcm@openssh.com"),
    "no acceptable macs": ("MAC", "MACs", "hmac-sha2-256-etm@openssh.com"),
    "no acceptable host key": ("type of host key", "HostKeyAlgorithms", "ssh-ed25519"),
}
"""For each error of paramiko what the server lacks, the setting of sshd_config, and a value that both support."""


class _Transport(Transport):
    """Transport that knows `CURVE25519` by both names."""

    _kex_info: ClassVar[Mapping[str, Any]] = Transport._kex_info  # type: ignore[attr-defined]  # the stubs lack it
    _preferred_kex: ClassVar[tuple[str, ...]] = Transport._preferred_kex  # type: ignore[attr-defined]  # the same
    if exchange := _kex_info.get(f"{CURVE25519}@libssh.org"):  # None in the FIPS mode of OpenSSL
        _kex_info = {**_kex_info, CURVE25519: exchange}
        _preferred_kex = (CURVE25519, *_preferred_kex)


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
    for words, (what, setting, value) in MISSING_ALGORITHMS.items():
        if words in error:
            return (
                f"llmb supports no {what} that the server offers; have the site add {value} to {setting} in its "
                f"sshd_config, or {ON_THE_HOST}"
            )
    return ""
