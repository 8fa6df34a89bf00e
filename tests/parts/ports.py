"""Free ports of this machine for servers that tests start."""

from __future__ import annotations

import functools
import os
import random
import socket
from collections.abc import Iterator

PORTS = range(10000, 20000) if "PYTEST_VERSION" in os.environ else range(31000, 32000)
"""Ports that neither the kernel gives to clients nor a job to its ranks, from 20000 on: a server listens on its port
only a while after a test has chosen it.

The tests and the other programs, such as `.ci/walk`, run at the same time and have ports of their own.
"""


def free_port(address: str = "127.0.0.1") -> int:
    """Return a free port."""
    [port] = free_ports(1, address)
    return port


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Return different free ports, none of which this process or another one of pytest-xdist returns again soon."""
    found: list[int] = []
    for port in _shuffled_ports():
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
            found.append(port)
        if len(found) == count:
            break
    return found


@functools.cache
def _shuffled_ports() -> Iterator[int]:
    """Yield the ports of this process forever, in random order, because other sessions of pytest search too."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    own = PORTS[worker :: int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))]
    while True:
        yield from random.SystemRandom().sample(own, len(own))  # hypothesis sets the seed of `random`
