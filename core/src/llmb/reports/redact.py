"""Replacement of host names, user names and addresses in the files of a record."""

from __future__ import annotations

import getpass
import ipaddress
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

HOME = re.compile(rb"(?<![A-Za-z0-9._/-])(?:/[A-Za-z0-9._-]+){0,2}/(?:home|Users)/([A-Za-z0-9._-]+)")
"""The user in the path of a home directory, which may be on a shared file system such as /lustre/home."""

LOGGED_HOSTS = (
    re.compile(rb"^(?:\s*\d+: )?([A-Za-z][\w.-]*):\d+:\d+ \[\d+\] NCCL ", re.MULTILINE),
    re.compile(rb"\bremote peer ([A-Za-z][\w.-]*)<\d+>"),
    re.compile(rb"^(?:\s*\d+: )?\w+: error: ([A-Za-z][\w.-]*): task", re.MULTILINE),
    re.compile(rb"^(?:\s*\d+: )?[\w.-]+: error: .*\bON ([A-Za-z][\w.-]*) CANCELLED", re.MULTILINE),
    re.compile(rb"^(?:\s*\d+: )?\w*stepd-([A-Za-z][\w.-]*): ", re.MULTILINE),
    re.compile(rb"^\s*host +: ([A-Za-z][\w.-]*)\s*$", re.MULTILINE),
)
"""Lines of logs that name a host: those of NCCL, of job steps that failed or were cancelled, and of launchers."""

FOLLOWER = re.compile(r"^job \S+ of (\S+) ")
"""The user whose job followed an attempt."""

OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
ADDRESSES = {
    "ip": re.compile(rf"(?<![\w.-])(?<!==)(?!127\.|0\.){OCTET}(?:\.{OCTET}){{3}}(?![\w-]|\.\d)".encode()),
    "email": re.compile(rb"(?<![\w.+-])(?!git@)[\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}(?![\w-])"),
}
"""Addresses that are replaced wherever they are. A version with four parts after == is no IP address."""

IPV6_LIKE = re.compile(rb"(?<![\w:.-])(?!c10::)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
"""Texts that may be IPv6 addresses, also after a bracket. ``c10::`` is a namespace of C++ in many logs."""

NOT_IN_NAME = "A-Za-z0-9_-"
SHORTEST = 2
"""The least characters of a name that is replaced. Shorter ones occur in any word."""


class Redactor:
    """Replaces names by numbered words, such as ``host-1``: the same name by the same word in all files.

    The names are those of specs and results, those that known lines of logs contain, users in paths below /home, IP
    addresses except those of this machine, and e-mail addresses.
    """

    def __init__(
        self, specs: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]], files: Iterable[bytes]
    ) -> None:
        attempts = [each for result in results for each in result.get("attempts") or ()]
        hosts = {name for spec in specs for name in _hosts(spec)} | {socket.gethostname(), socket.getfqdn()}
        hosts |= {node for each in attempts for node in each.get("nodes") or ()}
        hosts |= {host.partition(".")[0] for host in hosts}
        hosts |= {host for result in results for host in _failing_hosts(result)}
        users = {name for spec in specs for name in _users(spec)} | {_own_name()}
        users |= {name for each in attempts for name in FOLLOWER.findall(each.get("followed_by") or "")}
        addresses: dict[str, set[str]] = {kind: set() for kind in ADDRESSES}
        for data in files:
            users |= {name.decode() for name in HOME.findall(data)}
            hosts |= {name.decode() for pattern in LOGGED_HOSTS for name in pattern.findall(data)}
            for kind, pattern in ADDRESSES.items():
                addresses[kind] |= {name.decode() for name in pattern.findall(data)}
            addresses["ip"] |= {text for name in IPV6_LIKE.findall(data) if _is_ipv6(text := name.decode())}
        words: dict[bytes, bytes] = {}
        for kind, names in (("user", users), ("host", hosts - {"localhost", "127"}), *addresses.items()):
            known = sorted(name for name in names if len(name) >= SHORTEST)
            words |= {name.encode(): f"{kind}-{number}".encode() for number, name in enumerate(known, 1)}
        self._words = words
        longest_first = b"|".join(map(re.escape, sorted(words, key=len, reverse=True)))
        edges = NOT_IN_NAME.encode()
        begin = rb"(?:(?<![%s])|(?<=stepd-))" % edges  # a daemon of job steps may name its node so
        self._names = re.compile(rb"%s(?:%s)(?![%s])" % (begin, longest_first or rb"(?!)", edges))

    def redact(self, data: bytes) -> bytes:
        """Return data without the names."""
        return self._names.sub(lambda found: self._words[found[0]], data)

    def redact_path(self, path: str) -> str:
        """Return the path of a file in a bundle, in which only the name of the file may contain names."""
        folder, slash, name = path.rpartition("/")
        return f"{folder}{slash}{self.redact(name.encode()).decode()}"


def _hosts(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the machines of a run: of its job, and of its target."""
    found = spec.get("provenance", {}).get("host", ())
    yield from [found] if isinstance(found, str) else found
    if host := spec.get("target", {}).get("host"):
        yield str(host).rpartition("@")[2].partition(":")[0]


def _failing_hosts(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the hosts that a result names as the place of a failure or as slow."""
    ranks = result.get("rank_times") or {}
    found = [result.get("failure") or {}, *ranks.get("slow_ranks", ()), *ranks.get("slow_hosts", ())]
    yield from (each["host"] for each in found if each.get("host"))


def _users(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of users in the host of the target and in the job's environment."""
    user, at, _ = str(spec.get("target", {}).get("host", "")).rpartition("@")
    if at:
        yield user
    env = spec.get("provenance", {}).get("env", {})
    yield from (str(env[name]) for name in ("USER", "LOGNAME") if env.get(name))


def _own_name() -> str:
    with suppress(OSError, KeyError):
        return getpass.getuser()
    return ""


def _is_ipv6(text: str) -> bool:
    """Return True for an IPv6 address except those of this machine. A time such as 12:30:59 is no address."""
    with suppress(ValueError):
        address = ipaddress.IPv6Address(text)
        return not address.is_loopback and not address.is_unspecified
    return False
