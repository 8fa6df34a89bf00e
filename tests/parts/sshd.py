"""A real SSH server on a free port of this machine, with its own keys, known hosts and home of a client.

The SSH configuration of the user and of the machine is neither read nor changed. With ``HOME=server.home`` (see
`Sshd.env`), a client reaches the server by the name ``server.host``.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from parts.deadline import DEADLINE_S, wait_until
from parts.ports import free_port

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin")

SETTINGS = {
    "PidFile": "none",
    "StrictModes": "no",
    "UsePAM": "no",
    "UseDNS": "no",
    "PasswordAuthentication": "no",
    "KbdInteractiveAuthentication": "no",
    "PermitRootLogin": "prohibit-password",
    "PrintMotd": "no",
    "PrintLastLog": "no",
    "LogLevel": "VERBOSE",
    "Subsystem": "sftp internal-sftp",
}


ESTABLISHED, CLOSE_WAIT = "01", "08"
"""States of a socket in /proc/net/tcp."""


class Sshd:
    """SSH server. ``env`` is added to the environment of its sessions, and ``user`` logs in.

    Another ``user`` than the current one needs root, and an account that is not locked (``usermod -p '*' NAME``).
    ``settings`` are more lines of sshd_config.
    """

    def __init__(
        self,
        *,
        host: str = "cluster",
        user: str | None = None,
        address: str = "127.0.0.1",
        env: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.host = host
        self.user = user or getpass.getuser()
        self.address = address
        self.port = free_port(address)
        self.folder = Path(tempfile.mkdtemp(prefix="llmb-sshd-"))
        self.folder.chmod(0o755)  # the user who logs in reads the authorized keys
        self.home = self.folder / "home"
        self.ssh = self.home / ".ssh"
        self.key = self.ssh / "id_ed25519"
        self.log = self.folder / "sshd.log"
        self._env = dict(env or {})
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._write_files()

    def __enter__(self) -> Sshd:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def env(self) -> dict[str, str]:
        """Environment of a client: its home, and no agent."""
        return {"HOME": str(self.home), "SSH_AUTH_SOCK": ""}

    def _write_files(self) -> None:
        self.ssh.mkdir(parents=True, mode=0o700)
        make_key(self.folder / "host_key")
        make_key(self.key)
        self.accept(self.key)
        self.trust()
        self.write_config()

    def accept(self, key: Path) -> None:
        """Authorize a key."""
        with (self.folder / "authorized_keys").open("a") as file:
            file.write(key.with_name(f"{key.name}.pub").read_text())

    def trust(self) -> None:
        """Write the server's key into the client's known hosts."""
        kind, key, *_ = (self.folder / "host_key.pub").read_text().split()
        (self.ssh / "known_hosts").write_text(f"[{self.address}]:{self.port} {kind} {key}\n")

    def write_config(self, port: int | None = None, **more: str) -> None:
        """Write the client's configuration. ``port`` is that of a network between both, ``more`` are more keys."""
        keys = {
            "HostName": self.address,
            "Port": str(port or self.port),
            "User": self.user,
            "IdentityFile": str(self.key),
            **({"HostKeyAlias": f"[{self.address}]:{self.port}"} if port else {}),
            **more,
        }
        lines = [f"Host {self.host}", *(f"  {key} {value}" for key, value in keys.items())]
        (self.ssh / "config").write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        """Start to listen, always on the same port."""
        assert SSHD, "sshd is not installed"
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        settings = {
            "ListenAddress": self.address,
            "Port": str(self.port),
            "HostKey": str(self.folder / "host_key"),
            "AuthorizedKeysFile": str(self.folder / "authorized_keys"),
            **SETTINGS,
            **({"SetEnv": " ".join(f'{name}="{value}"' for name, value in self._env.items())} if self._env else {}),
            **self._settings,
        }
        config = self.folder / "sshd_config"
        config.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        self._process = subprocess.Popen(
            [SSHD, "-D", "-f", str(config), "-E", str(self.log)], stdin=subprocess.DEVNULL, start_new_session=True
        )
        wait_for_banner(self.address, self.port, self._process)

    def stop(self) -> None:
        """Stop listening, and end all sessions. Their detached processes stay alive."""
        if self._process is not None:
            sessions = self.sessions
            self._process.kill()
            self._process.wait()
            self._process = None
            signal_all(sessions, signal.SIGKILL)

    def drop(self) -> None:
        """End all sessions, but keep listening. Return once the clients have closed their connections."""
        signal_all(self.sessions, signal.SIGKILL)
        self._wait_for_clients()

    def _wait_for_clients(self) -> None:
        """Wait until no client has a connection, because what it writes to a dead one has an unknown outcome."""
        wait_until(lambda: not open_connections(self.address, self.port), "the end of dead connections")

    def freeze(self) -> None:
        """Stop the processes of the server and its sessions, without closing a connection."""
        assert self._process
        signal_all([self._process.pid, *self.sessions], signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue the processes that `freeze` stopped."""
        assert self._process
        signal_all([self._process.pid, *self.sessions], signal.SIGCONT)

    @property
    def sessions(self) -> list[int]:
        """Process ids of sshd that serve connections."""
        found = [self._process.pid] if self._process else []
        processes = sshd_processes()
        for parent in found:  # the list grows meanwhile
            found += [pid for pid, of in processes.items() if of == parent]
        return found[1:]

    @property
    def logins(self) -> int:
        """Number of logins so far."""
        return self.log.read_text(errors="replace").count("Accepted publickey")


def make_key(file: Path, passphrase: str = "") -> None:
    """Create an ed25519 key, and its public key beside it."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "llmb-test", "-f", str(file)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def wait_for_banner(address: str, port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server responds."""
    end = time.monotonic() + DEADLINE_S
    while True:
        assert process.poll() is None, "sshd ended at once; see sshd.log"
        assert time.monotonic() < end, "sshd does not answer"
        try:
            with socket.create_connection((address, port), timeout=DEADLINE_S) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            time.sleep(0.02)


def open_connections(address: str, port: int) -> int:
    """Return how many sockets of clients are connected to the server, also those that the server has closed."""
    remote = f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}:{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return sum(row[2] == remote and row[3] in (ESTABLISHED, CLOSE_WAIT) for row in rows)


def sshd_processes() -> dict[int, int]:
    """Return the processes of sshd, each with its parent. Since OpenSSH 9.8, those of a session have other names."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path("/proc", name, "stat").read_text(errors="replace")
        except OSError:  # the process has just ended
            continue
        if process := re.match(r"(\d+) \(sshd(?:-session|-auth)?\) \S (\d+) ", stat):
            found[int(process[1])] = int(process[2])
    return found


def signal_all(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to the processes that still exist."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
