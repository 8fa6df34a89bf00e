"""Free ports of this machine for servers that tests start."""

from __future__ import annotations

import random
import socket

PORTS = range(15000, 32000)
"""Below the ports that the kernel gives to clients, which would take a port before its server listens on it."""


def free_port(address: str = "127.0.0.1") -> int:
    """Return a free port."""
    [port] = free_ports(1, address)
    return port


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Return different free ports. They are random, because other processes search at the same time."""
    found: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):  # hypothesis sets the seed of `random`
        if len(found) == count:
            break
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
            found.append(port)
    return found
