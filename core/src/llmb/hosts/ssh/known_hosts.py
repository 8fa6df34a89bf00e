"""Verification of SSH host keys against the known_hosts files. llmb connects to no host with another key."""

import base64
import fnmatch
import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import attrs
from paramiko import HostKeys, MissingHostKeyPolicy, PKey, SSHClient

from llmb.values.errors import TargetError

USER_FILES = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256")
MACHINE_FILES = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"


@attrs.frozen
class KnownKey:
    """A host key from a known_hosts file. ``where`` is FILE:LINE. A revoked key is never accepted."""

    key: PKey
    where: str
    revoked: bool = False


@attrs.frozen
class KnownHost(MissingHostKeyPolicy):
    """The known keys of a host, as the policy of a paramiko client that itself knows no keys.

    ``name`` is the name in known_hosts: ``host``, or ``[host]:port``.
    """

    name: str
    file: str
    keys: tuple[KnownKey, ...]

    @classmethod
    def find(cls, host: str, port: int, config: dict[str, str]) -> Self:
        """Look up a host in the files, and under the name, that its SSH configuration sets."""
        host = config.get("hostkeyalias", host).lower()
        without_port = port == 22 or "hostkeyalias" in config
        name = host if without_port else f"[{host}]:{port}"
        files = _files(config, "userknownhostsfile", USER_FILES) + _files(config, "globalknownhostsfile", MACHINE_FILES)
        keys = tuple(_keys(files, name))
        if name != host and all(each.revoked for each in keys):  # no key is known for this port
            keys += tuple(_keys(files, host))
        first = files[0] if files else Path(os.path.expanduser("~/.ssh/known_hosts"))
        return cls(name=name, file=str(first), keys=keys)

    @property
    def key_types(self) -> list[str]:
        """The algorithms of the known keys, so that the server, which may have several keys, presents a known one."""
        kinds = dict.fromkeys(each.key.get_name() for each in self.keys if not each.revoked)
        return [name for kind in kinds for name in ([*RSA_SIGNATURES] if kind == "ssh-rsa" else [kind])]

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> None:
        """Raise TargetError if the key is unknown, changed or revoked, with the command that accepts the key."""
        presented = f"{key.get_name()} {key.fingerprint}"
        line = shlex.quote(f"{self.name} {key.get_name()} {key.get_base64()}")
        accept = _append_command(line, Path(self.file))
        same = [each for each in self.keys if each.key == key]
        if revoked := [each for each in same if each.revoked]:
            raise TargetError(f"its host key {presented} is revoked in {revoked[0].where}")
        if same:
            return
        valid = [each for each in self.keys if not each.revoked]
        if not valid:
            raise TargetError(
                f"its host key {presented} is unknown; compare it with what the owner of the host publishes, "
                f"then accept it with `{accept}`"
            )
        known = valid[0]
        forget = f"ssh-keygen -R {shlex.quote(self.name)} -f {shlex.quote(known.where.rpartition(':')[0])}"
        raise TargetError(
            f"its host key has changed from {known.key.fingerprint} ({known.where}) to {presented}, "
            "which may be an attack; if the owner of the host confirms the new key, "
            f"accept it with `{forget} && {accept}`"
        )


def _files(config: dict[str, str], key: str, default: str) -> list[Path]:
    names = config.get(key, default)
    return [] if names.lower() == "none" else [Path(os.path.expanduser(name)) for name in shlex.split(names)]


def _append_command(line: str, file: Path) -> str:
    """Return a command that appends a quoted line to a file, which may be missing or lack its last newline."""
    create = "" if file.parent.is_dir() else f"mkdir -p -m 700 {shlex.quote(str(file.parent))} && "
    try:
        ends_within_a_line = file.read_bytes()[-1:] not in (b"", b"\n")
    except OSError:  # the file does not exist
        ends_within_a_line = False
    echo = f"(echo; echo {line})" if ends_within_a_line else f"echo {line}"
    return f"{create}{echo} >> {shlex.quote(str(file))}"


def _keys(files: Iterable[Path], name: str) -> Iterator[KnownKey]:
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            continue  # a missing file lists no keys
        for number, line in enumerate(lines, 1):
            if (key := _parse_line(line, name, f"{file}:{number}")) is not None:
                yield key


def _parse_line(line: str, name: str, where: str) -> KnownKey | None:
    """Return the key of a line that names the host. Ignore malformed lines, as OpenSSH does."""
    words = line.split()
    revoked = words[:1] == ["@revoked"]
    names, kind, data, *_ = [*words[revoked:], "", "", ""]
    if not data or names.startswith(("#", "@")) or not _matches(names, name):
        return None
    try:
        key = PKey.from_type_string(kind, base64.b64decode(data, validate=True))
    except Exception:  # noqa: BLE001  # paramiko raises exceptions of many kinds for a malformed key
        return None
    return KnownKey(key, where, revoked=revoked)


def _matches(names: str, name: str) -> bool:
    """Check whether the names of a line match a host: plain, with wildcards, negated or hashed names."""
    if names.startswith("|"):
        return _matches_hash(names, name)
    patterns = names.lower().replace("[", "[[]").split(",")  # a bracket, as before a port, means itself
    if any(fnmatch.fnmatchcase(name, pattern[1:]) for pattern in patterns if pattern.startswith("!")):
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _matches_hash(hashed: str, name: str) -> bool:
    """Check whether ``|1|SALT|HASH`` is the hash of a name. A malformed hash matches no name."""
    try:
        return HostKeys.hash_host(name, hashed) == hashed
    except (ValueError, AssertionError):
        return False
