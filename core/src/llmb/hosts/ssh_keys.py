"""Logging in with the user's keys: those that ~/.ssh/config names, the agent's, the usual files. Nothing prompts."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paramiko import (
    Agent,
    AuthenticationException,
    BadAuthenticationType,
    PKey,
    SSHConfig,
    SSHException,
    Transport,
)
from paramiko.auth_strategy import AuthStrategy
from paramiko.pkey import UnknownKeyType

from llmb.values.errors import TargetError

USUAL_FILES = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


class Keys(AuthStrategy):
    """Tries key after key, as OpenSSH does. Raises TargetError that says what was tried and what to do."""

    def __init__(self, ssh_config: Mapping[str, Any], username: str, **_: Any) -> None:
        super().__init__(ssh_config=SSHConfig())  # not read by anything but us
        self._user = username
        self._named = [Path(name).expanduser() for name in ssh_config.get("identityfile", ())]
        self._named_only = ssh_config.get("identitiesonly", "no").lower() == "yes"
        self._encrypted: list[Path] = []
        self._tried = 0

    def authenticate(self, transport: Transport) -> list[Any]:
        """Until the server lets the user in."""
        agent = _agent()
        try:
            for key in self._keys(agent):
                self._tried += 1
                try:
                    asks_for_more = transport.auth_publickey(self._user, key)
                except BadAuthenticationType as error:
                    raise TargetError(
                        f"takes no keys, only {', '.join(error.allowed_types)}, and llmb types nothing"
                    ) from None
                except AuthenticationException as error:
                    _raise_unless_refused(error, transport, self._tried)
                    continue
                if asks_for_more:
                    raise TargetError(
                        f"wants {', '.join(asks_for_more)} besides the key, and llmb types nothing; "
                        "a jump host or a certificate that needs none can be named in ~/.ssh/config"
                    )
                return []
        finally:
            if agent is not None:
                agent.close()
        raise self._refused()

    def _keys(self, agent: Agent | None) -> Iterator[PKey]:
        """The named files, then the agent's keys, then the usual files; an encrypted file's key is the agent's."""
        held = {key.asbytes(): key for key in agent.get_keys()} if agent is not None else {}
        files = self._named or [Path(name).expanduser() for name in USUAL_FILES]
        from_files = (key for file in files if (key := self._load(file, held)) is not None)
        if self._named:
            yield from from_files
        if not self._named_only:
            yield from held.values()
        if not self._named:
            yield from from_files

    def _load(self, file: Path, held: dict[bytes, Any]) -> PKey | None:
        """The key of a file, or the agent's for it; null where there is neither, as OpenSSH passes over such files."""
        if (public := _public_part(file)) is not None and public in held:
            agents_key: PKey = held.pop(public)
            return agents_key
        try:
            return PKey.from_path(file)
        except TypeError:  # what the cryptography library raises where a passphrase is needed
            self._encrypted.append(file)
            return None
        except (OSError, ValueError, SSHException, UnknownKeyType):
            return None

    def _refused(self) -> TargetError:
        if self._encrypted:
            file = self._encrypted[0]
            return TargetError(f"the key {file} is encrypted and no agent holds it; give it to one: ssh-add {file}")
        if not self._tried:
            where = ", ".join(map(str, self._named)) or "~/.ssh"
            return TargetError(f"there is no key to log in with in {where}, and no agent has one; make one: ssh-keygen")
        keys = "the key" if self._tried == 1 else f"all {self._tried} keys"
        return TargetError(f"refuses {keys} of user {self._user}; add the public part to ~/.ssh/authorized_keys there")


def _raise_unless_refused(error: AuthenticationException, transport: Transport, tried: int) -> None:
    """A key that is refused is one thing; a server that is gone, or answers no more, another."""
    if not transport.is_active():
        raise TargetError(
            f"closed the connection at key {tried}; where it allows few tries, "
            "name the key with IdentityFile and IdentitiesOnly yes in ~/.ssh/config"
        ) from error
    if "timeout" in str(error):
        raise TargetError(f"no answer to the login within {transport.auth_timeout:g} s") from error


def _agent() -> Agent | None:
    if not os.environ.get("SSH_AUTH_SOCK"):
        return None
    try:
        return Agent()
    except SSHException:  # something else listens where an agent should
        return None


def _public_part(file: Path) -> bytes | None:
    """What the file beside a private key says is its public part; a named file may be that file itself."""
    beside = file if file.suffix == ".pub" else file.with_name(f"{file.name}.pub")
    try:
        return base64.b64decode(beside.read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
