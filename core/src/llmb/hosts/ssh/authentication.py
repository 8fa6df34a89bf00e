"""Login with the user's keys: files named in ~/.ssh/config, the agent's keys, default files. Never prompts."""

import base64
import os
import shlex
import socket
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from paramiko import (
    Agent,
    AuthenticationException,
    BadAuthenticationType,
    Message,
    PKey,
    SSHConfig,
    SSHException,
    Transport,
)
from paramiko.agent import AgentSSH
from paramiko.auth_strategy import AuthStrategy
from paramiko.pkey import PublicBlob

from llmb.hosts.ssh.timeouts import CONNECT_TIMEOUT_S
from llmb.values.errors import TargetError

ON_THE_HOST = "run llmb on a login node, without `host`"
DEFAULT_FILES = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


class PublicKeys(AuthStrategy):
    """Authentication strategy that tries one key after another, in the order of OpenSSH.

    ``address`` has the words for ``ssh-copy-id`` that name the host.
    """

    def __init__(self, ssh_config: Mapping[str, Any], username: str, address: str) -> None:
        super().__init__(ssh_config=SSHConfig())  # the base class does not read it
        self._user = username
        self._address = address
        self._named = [Path(os.path.expanduser(name)) for name in ssh_config.get("identityfile", ())]
        self._named_only = ssh_config.get("identitiesonly", "no").lower() == "yes"
        self._certificate = _read_certificate(ssh_config.get("certificatefile", ""))
        self._agent_socket = _find_agent_socket(ssh_config.get("identityagent", "SSH_AUTH_SOCK"))
        self._encrypted: list[Path] = []
        self._unreadable: dict[Path, str] = {}  # files that ~/.ssh/config names, with the reason or ""
        self._tried: set[bytes] = set()  # the public keys

    def authenticate(self, transport: Transport) -> list[Any]:
        """Try keys until the server accepts one.

        Raise TargetError, with the reason and a remedy, if the server accepts none.
        """
        agent = _connect_agent(self._agent_socket)
        try:
            for key in self._with_certificate(self._keys(agent)):
                self._tried.add(key.asbytes())
                try:
                    further_methods = transport.auth_publickey(self._user, key)
                except BadAuthenticationType as error:
                    raise TargetError(
                        f"the server accepts no keys, only {', '.join(error.allowed_types)}, "
                        f"which llmb does not support because it never prompts; {ON_THE_HOST}"
                    ) from None
                except AuthenticationException as error:
                    _raise_unless_rejected(error, transport, len(self._tried))
                    continue
                if further_methods:
                    raise TargetError(
                        f"the server requires {', '.join(further_methods)} in addition to the key, which llmb does not "
                        "support because it never prompts; set a jump host or a certificate without it in "
                        f"~/.ssh/config, or {ON_THE_HOST}"
                    )
                return []
        finally:
            if agent is not None:
                agent.close()
        raise self._login_error()

    def _keys(self, agent: Agent | None) -> Iterator[PKey]:
        """Yield the keys of named files, then the agent's keys, then the keys of the default files.

        The key of an encrypted file is the agent's key for this file. No key is offered twice, because servers allow
        few attempts.
        """
        held = {key.asbytes(): key for key in agent.get_keys()} if agent is not None else {}
        files = self._named or [Path(os.path.expanduser(name)) for name in DEFAULT_FILES]
        from_files = (key for file in files if (key := self._load(file, held)) is not None)
        from_agent = () if self._named_only else held.values()
        offered: set[bytes] = set()
        for key in chain(from_files, from_agent) if self._named else chain(from_agent, from_files):
            if key.asbytes() not in offered:
                offered.add(key.asbytes())
                yield key

    def _with_certificate(self, keys: Iterator[PKey]) -> Iterator[PKey]:
        """Yield each key, and before it the same key with the certificate that CertificateFile has for it."""
        for key in keys:
            if self._certificate and _certifies(self._certificate, key):
                own = key.public_blob
                key.public_blob = self._certificate
                yield key
                key.public_blob = own
            yield key

    def _load(self, file: Path, held: Mapping[bytes, PKey]) -> PKey | None:
        """Return the agent's key for a file, else the key in the file, else None, as OpenSSH skips unusable files."""
        if (public := _public_part(file)) is not None and public in held:
            return held[public]
        try:
            return PKey.from_path(file)
        except TypeError:  # raised by the cryptography library if a passphrase is required
            self._encrypted.append(file)
            return None
        except FileNotFoundError:
            return None
        except Exception as error:  # noqa: BLE001  # paramiko lets errors of the cryptography library through
            if self._named:
                self._unreadable[file] = error.strerror or "" if isinstance(error, OSError) else ""
            return None

    def _login_error(self) -> TargetError:
        if self._encrypted:
            file = self._encrypted[0]
            return TargetError(
                f"the key {file} is encrypted and not in the agent; add it with `ssh-add {shlex.quote(str(file))}`"
            )
        if self._unreadable:
            file, reason = next(iter(self._unreadable.items()))
            private = file.with_suffix("") if file.suffix == ".pub" else file
            remedy = "name another key as IdentityFile in ~/.ssh/config"
            if reason:
                return TargetError(f"llmb cannot read the key {file} ({reason}); correct this, or {remedy}")
            agent = f"add it to the agent with `ssh-add {shlex.quote(str(private))}`"
            return TargetError(f"llmb cannot read the key {file}; {agent}, or {remedy}")
        if not self._tried:
            where = ", ".join(map(str, self._named)) or "~/.ssh"
            return TargetError(f"no key found in {where} or in an agent; create one with `ssh-keygen`")
        keys = "the key" if len(self._tried) == 1 else f"all {len(self._tried)} keys"
        named = (f"-i {shlex.quote(str(file))} " for file in self._named if _public_part(file) in self._tried)
        add = f"add the public key to ~/.ssh/authorized_keys there: `ssh-copy-id {next(named, '')}{self._address}`"
        return TargetError(f"the server rejected {keys} of user {self._user}; {add}")


def _read_certificate(name: str) -> PublicBlob | None:
    """Return the certificate in a file, or None, as OpenSSH ignores a file that it cannot read."""
    try:
        return PublicBlob.from_file(os.path.expanduser(name)) if name else None
    except (OSError, ValueError):
        return None


def _certifies(certificate: PublicBlob, key: PKey) -> bool:
    """Check whether a certificate contains this public key, which follows its type and a nonce."""
    content, public = Message(certificate.key_blob), Message(key.asbytes())
    content.get_string()
    content.get_string()
    public.get_string()
    return content.get_remainder().startswith(public.get_remainder())


def _raise_unless_rejected(error: AuthenticationException, transport: Transport, tried: int) -> None:
    """Raise TargetError if the login failed because the server is gone or silent, not because it rejected the key."""
    if not transport.is_active():
        raise TargetError(
            f"the server closed the connection at key {tried}; if it allows few attempts, "
            "set IdentityFile and IdentitiesOnly yes in ~/.ssh/config"
        ) from error
    if "timeout" in str(error):
        raise TargetError(f"no response to the login within {transport.auth_timeout:g} s") from error


class _AgentAt(Agent):
    """The agent at a socket. paramiko's own agent is always the one that SSH_AUTH_SOCK names."""

    def __init__(self, socket_file: str) -> None:
        AgentSSH.__init__(self)  # not Agent's, which connects
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CONNECT_TIMEOUT_S)  # a forwarded agent never answers after its connection broke
            connection.connect(socket_file)
            self._connect(connection)  # type: ignore[attr-defined]  # the stubs lack what subclasses call
            connection.settimeout(None)  # a signature may need the user
        except BaseException:
            connection.close()
            raise


def _find_agent_socket(setting: str) -> str:
    """Return the path that ``IdentityAgent`` means: a path, the name of a variable, or "" for no agent."""
    if setting.lower() == "none":
        return ""
    if setting == "SSH_AUTH_SOCK" or setting.startswith("$"):
        return os.environ.get(setting.strip("${}"), "")
    return os.path.expanduser(setting)


def _connect_agent(socket_file: str) -> Agent | None:
    if not socket_file:
        return None
    try:
        return _AgentAt(socket_file)
    except (OSError, SSHException):  # the agent is gone or hangs, or the socket belongs to another program
        return None


def _public_part(file: Path) -> bytes | None:
    """Return the public key of a private key file from its .pub file, or None. A .pub file can be named itself."""
    beside = file if file.suffix == ".pub" else file.with_name(f"{file.name}.pub")
    try:
        return base64.b64decode(beside.read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
