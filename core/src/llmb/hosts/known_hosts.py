"""Verification of SSH host keys against the known_hosts files. llmb connects to no host with another key."""

import fnmatch
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import attrs
from paramiko import HostKeys, MissingHostKeyPolicy, PKey, SSHClient
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

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
class KnownHost:
    """The known keys of a host. ``name`` is the name in known_hosts: ``host``, or ``[host]:port``."""

    name: str
    file: str
    keys: tuple[KnownKey, ...]

    @classmethod
    def find(cls, host: str, port: int, config: dict[str, str]) -> Self:
        """Look up a host in the files, and under the name, that its SSH configuration sets."""
        host = config.get("hostkeyalias", host).lower()
        without_port = port == 22 or "hostkeyalias" in config
        name = host if without_port else f"[{host}]:{port}"
        files = [
            *_files(config, "userknownhostsfile", USER_FILES),
            *_files(config, "globalknownhostsfile", MACHINE_FILES),
        ]
        keys = tuple(_keys(files, name)) or tuple(_keys(files, host))
        return cls(name=name, file=str(files[0] if files else Path(USER_FILES.split()[0]).expanduser()), keys=keys)

    @property
    def key_types(self) -> list[str]:
        """The algorithms of the known keys, so that the server, which may have several keys, presents a known one."""
        kinds = dict.fromkeys(each.key.get_name() for each in self.keys if not each.revoked)
        return [name for kind in kinds for name in ([*RSA_SIGNATURES] if kind == "ssh-rsa" else [kind])]

    def verify(self, key: PKey) -> None:
        """Raise TargetError if the key is unknown, changed or revoked, with the command that accepts the key."""
        presented = f"{key.get_name()} {key.fingerprint}"
        line = shlex.quote(f"{self.name} {key.get_name()} {key.get_base64()}")
        accept = f"echo {line} >> {shlex.quote(self.file)}"
        same = [each for each in self.keys if each.key == key]
        if revoked := [each for each in same if each.revoked]:
            raise TargetError(f"its host key {presented} is revoked in {revoked[0].where}")
        if same:
            return
        if not self.keys:
            raise TargetError(
                f"its host key {presented} is unknown; compare it with what the owner of the host publishes, "
                f"then accept it with: {accept}"
            )
        known = self.keys[0]
        forget = f"ssh-keygen -R {shlex.quote(self.name)} -f {shlex.quote(known.where.rpartition(':')[0])}"
        raise TargetError(
            f"its host key has changed from {known.key.fingerprint} ({known.where}) to {presented}, "
            "which may be an attack; if the owner of the host confirms the new key, "
            f"accept it with: {forget} && {accept}"
        )


class VerifyHostKey(MissingHostKeyPolicy):
    """Policy of a paramiko client that itself knows no keys: it verifies every host key with a `KnownHost`."""

    def __init__(self, known: KnownHost) -> None:
        self._known = known

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> None:
        """Raise TargetError if the key is not accepted."""
        self._known.verify(key)


def _files(config: dict[str, str], key: str, default: str) -> list[Path]:
    names = config.get(key, default)
    return [] if names.lower() == "none" else [Path(name).expanduser() for name in shlex.split(names)]


def _keys(files: Iterable[Path], name: str) -> Iterator[KnownKey]:
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue  # a missing file lists no keys
        for number, line in enumerate(lines, 1):
            marker, rest = line.split(maxsplit=1) if line.startswith("@") and " " in line else ("", line)
            if marker in ("", "@revoked") and (key := _key(rest.strip(), name)) is not None:
                yield KnownKey(key, f"{file}:{number}", revoked=marker == "@revoked")


def _key(line: str, name: str) -> PKey | None:
    names = line.partition(" ")[0]
    if line.startswith("#") or not _matches(names, name):
        return None
    try:
        entry = HostKeyEntry.from_line(line)
    except InvalidHostKey:
        return None
    return entry.key if entry is not None else None


def _matches(names: str, name: str) -> bool:
    """Check whether the names of a line match a host: plain, with wildcards, negated or hashed names."""
    if names.startswith("|1|"):
        return HostKeys.hash_host(name, names) == names
    patterns = names.lower().split(",")
    if any(_matches_pattern(name, pattern[1:]) for pattern in patterns if pattern.startswith("!")):
        return False
    return any(_matches_pattern(name, pattern) for pattern in patterns)


def _matches_pattern(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))
