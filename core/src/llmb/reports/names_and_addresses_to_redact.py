"""Names of hosts and users, and addresses, in the files of records."""

import getpass
import ipaddress
import json
import re
import socket
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from llmb.values.frozen import table_of

HOME = re.compile(rb"(?<![A-Za-z0-9._/-])(?:/[A-Za-z0-9._-]+){0,2}/(?:home|Users)/([A-Za-z0-9._-]+)")
"""The user in the path of a home directory, which may be on a shared file system such as /lustre/home."""

LOGGED_HOSTS = (
    re.compile(rb"^(?:[^\S\n]*+\d+: )?([A-Za-z][\w.-]*):\d+:\d+ \[\d+\] NCCL ", re.MULTILINE),
    re.compile(rb"\bremote peer ([A-Za-z][\w.-]*)<\d+>"),
    re.compile(rb"^(?:[^\S\n]*+\d+: )?\w+: error: ([A-Za-z][\w.-]*): task", re.MULTILINE),
    re.compile(rb"^(?:[^\S\n]*+\d+: )?[\w.-]+: error: .*\bON ([A-Za-z][\w.-]*) CANCELLED", re.MULTILINE),
    re.compile(rb"^(?:[^\S\n]*+\d+: )?\w*stepd-([A-Za-z][\w.-]*): ", re.MULTILINE),
    re.compile(rb"^[^\S\n]*+host +: ([A-Za-z][\w.-]*)[^\S\n]*$", re.MULTILINE),
)
"""Lines of logs that name a host: those of NCCL, of job steps that failed or were cancelled, and of launchers."""

ATTEMPT_USERS = (re.compile(rb"\bjob \S+ of (\S+) \("), re.compile(rb"\bcancelled by (\w[\w.-]*)"))
"""The user whose job followed an attempt, and the user who cancelled an attempt."""

OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
ADDRESSES = {
    "ip": re.compile(rf"(?<![\w.-])(?<!==)(?!127\.|0\.){OCTET}(?:\.{OCTET}){{3}}(?![\w-]|\.\d)".encode()),
    "email": re.compile(rb"(?<![\w.+-])(?!git@)[\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}(?![\w-])"),
}
"""Addresses that are replaced wherever they are. A version with four parts after == is no IP address."""

IPV6_LIKE = re.compile(rb"(?<![\w:.-])(?!c10::)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
"""Texts that may be IPv6 addresses, also after a bracket. ``c10::`` is a namespace of C++ in many logs."""

WORD_KEYS = ("recipe", "gpu_type", "dtype", "variant", "scheduler", "event", "state", "cause", "verdict")
"""Keys of records whose values are words of llmb."""

PATH_KEYS = ("workdir", "directory", "imported", "HOME", "PWD", "LLMB_RUN_DIR")
"""Keys of records whose values are paths, which often contain the user."""

WORD = re.compile(r"[A-Za-z0-9_-]+")
WORDS = re.compile(r"[\w./-]+")

Documents = list[dict[str, Any]]


def find_names(files: Mapping[str, bytes]) -> dict[str, set[str]]:
    """Return the hosts, users, IP addresses and e-mail addresses that files of records name."""
    documents = read_documents(files)
    hosts = {name for document in documents for name in _hosts(document)}
    users = {name for document in documents for name in _users(document)}
    addresses: dict[str, set[str]] = {kind: set() for kind in ADDRESSES}
    for data in files.values():
        hosts |= _found(LOGGED_HOSTS, data)
        users |= _found([HOME], data)
        for kind, pattern in ADDRESSES.items():
            addresses[kind] |= _found([pattern], data)
        addresses["ip"] |= {text for text in _found([IPV6_LIKE], data) if _is_ipv6(text)}
    return {"user": users, "host": hosts - {"localhost", "127"}, **addresses}


def _found(patterns: Iterable[re.Pattern[bytes]], data: bytes) -> set[str]:
    return {name.decode() for pattern in patterns for name in pattern.findall(data)}


def names_of_this_machine() -> dict[str, set[str]]:
    """Return the names of this machine and of the user who runs llmb."""
    hosts = {socket.gethostname(), socket.getfqdn()}
    hosts |= {host.partition(".")[0] for host in hosts}
    return {"user": {_own_name()}, "host": hosts - {"localhost", "127"}}


def read_documents(files: Mapping[str, bytes]) -> Documents:
    """Return the spec, the result and the events of each record."""
    found: Documents = []
    for path, data in files.items():
        match path.rpartition("/")[2]:
            case "run.toml":
                with suppress(ValueError):
                    found.append(tomllib.loads(data.decode()))
            case "result.json":
                found.append(_read_json(data))
            case "events.jsonl":
                found += map(_read_json, data.splitlines())
    return found


def find_words(documents: Documents) -> set[str]:
    """Return the words of llmb in records, in lower case: keys, states, recipes and types of GPUs."""
    found = {"true", "false", "null", "none", "nan", "inf"}
    for key, value in _walk(documents):
        texts = [key, value] if key in WORD_KEYS and WORDS.fullmatch(value) else [key]
        found |= {word.lower() for text in texts for word in WORD.findall(text)}
    return found


def find_paths(documents: Documents) -> set[str]:
    """Return the paths of records: work directories, homes, and the logs that were imported."""
    return {value for key, value in _walk(documents) if key in PATH_KEYS and value.startswith("/")}


def _walk(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield each value of nested tables and lists as text, with its key. A table is an empty text."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield name, ""
            yield from _walk(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from _walk(each, key)
    elif key:
        yield key, str(value)


def _read_json(data: bytes) -> dict[str, Any]:
    """Return a JSON object, which is empty if the data is damaged."""
    with suppress(ValueError, RecursionError):
        found = json.loads(data)
        return found if isinstance(found, dict) else {}
    return {}


def _hosts(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the hosts of a run: of its target, its job and its attempts, and those that failed or were slow."""
    if host := table_of(document, "target").get("host"):
        name = str(host).rpartition("@")[2].partition(":")[0]
        yield from (name, name.partition(".")[0])
    of_job = table_of(document, "provenance").get("host", ())
    of_attempts = (node for attempt in _attempts(document) for node in attempt.get("nodes") or ())
    for name in (*([of_job] if isinstance(of_job, str) else of_job), *of_attempts):
        yield from (name, name.partition(".")[0])
    ranks = table_of(document, "rank_times")
    named = [table_of(document, "failure"), *ranks.get("slow_ranks", ()), *ranks.get("slow_hosts", ())]
    yield from (each["host"] for each in named if each.get("host"))


def _users(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the users of a run: in the host of its target, in the job's environment, and of its attempts."""
    user, at, _ = str(table_of(document, "target").get("host", "")).rpartition("@")
    if at:
        yield user
    env = table_of(table_of(document, "provenance"), "env")
    yield from (str(env[name]) for name in ("USER", "LOGNAME") if env.get(name))
    for attempt in _attempts(document):
        yield from _found(ATTEMPT_USERS, f"{attempt.get('followed_by')}\n{attempt.get('cause')}".encode())


def _attempts(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document.get("attempts") or () if isinstance(each, dict)]


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
