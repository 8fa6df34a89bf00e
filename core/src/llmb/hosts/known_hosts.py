"""Which keys a host may show, from the known_hosts files; a host that shows another is not spoken to."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
from paramiko import HostKeys, MissingHostKeyPolicy, PKey, SSHClient
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

from llmb.values.errors import TargetError

USER_FILES = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256")
MACHINE_FILES = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"


@attrs.frozen
class KnownKey:
    """A key that a file states for a host, and where; a revoked one is refused whatever else is stated."""

    key: PKey
    where: str
    revoked: bool = False


@attrs.frozen
class KnownHost:
    """What is known of a host. ``name`` is the one that stands in known_hosts: ``host``, or ``[host]:port``."""

    name: str
    file: str
    keys: tuple[KnownKey, ...]

    @classmethod
    def find(cls, host: str, port: int, config: dict[str, str]) -> KnownHost:
        """Look a host up, with the keys of its SSH configuration that say where and how."""
        host = config.get("hostkeyalias", host).lower()
        alone = port == 22 or "hostkeyalias" in config
        name = host if alone else f"[{host}]:{port}"
        files = [
            *_files(config, "userknownhostsfile", USER_FILES),
            *_files(config, "globalknownhostsfile", MACHINE_FILES),
        ]
        keys = tuple(_keys(files, name)) or tuple(_keys(files, host))
        return cls(name=name, file=str(files[0] if files else Path(USER_FILES.split()[0]).expanduser()), keys=keys)

    @property
    def key_types(self) -> list[str]:
        """The kinds of the known keys, as a client asks for them: a host has several keys and shows one."""
        kinds = dict.fromkeys(each.key.get_name() for each in self.keys if not each.revoked)
        return [name for kind in kinds for name in ([*RSA_SIGNATURES] if kind == "ssh-rsa" else [kind])]

    def judge(self, key: PKey) -> None:
        """Raises TargetError for a key that is not known, with the line that makes it known."""
        shown = f"{key.get_name()} {key.fingerprint}"
        line = shlex.quote(f"{self.name} {key.get_name()} {key.get_base64()}")
        accept = f"echo {line} >> {shlex.quote(self.file)}"
        same = [each for each in self.keys if each.key == key]
        if revoked := [each for each in same if each.revoked]:
            raise TargetError(f"its host key {shown} is revoked in {revoked[0].where}")
        if same:
            return
        if not self.keys:
            raise TargetError(f"its host key is not known; if {shown} is what its owner says, accept it with: {accept}")
        known = self.keys[0]
        forget = f"ssh-keygen -R {shlex.quote(self.name)} -f {shlex.quote(known.where.rpartition(':')[0])}"
        raise TargetError(
            f"its host key has changed: {known.where} says {known.key.fingerprint}, it shows {shown}; "
            f"someone may pose as it. If its owner says that it is right, accept it with: {forget} && {accept}"
        )


class Judge(MissingHostKeyPolicy):
    """Asked by a client, which itself knows no keys, about the key that a host shows."""

    def __init__(self, known: KnownHost) -> None:
        self._known = known

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> None:
        """Raises TargetError unless the key is known."""
        self._known.judge(key)


def _files(config: dict[str, str], key: str, usual: str) -> list[Path]:
    names = config.get(key, usual)
    return [] if names.lower() == "none" else [Path(name).expanduser() for name in shlex.split(names)]


def _keys(files: Iterable[Path], name: str) -> Iterator[KnownKey]:
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue  # one that is not there makes nothing known
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
    """Whether a host is among the names of a line: plain, with wildcards, negated, or hashed."""
    if names.startswith("|1|"):
        return HostKeys.hash_host(name, names) == names
    patterns = names.lower().split(",")
    if any(_fits(name, pattern[1:]) for pattern in patterns if pattern.startswith("!")):
        return False
    return any(_fits(name, pattern) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))
