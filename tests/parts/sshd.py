"""A real SSH server on a free port of this machine, with keys, known hosts and a client's home of its own.

Nothing of the user's or the machine's own SSH is read or changed. ``HOME=server.home`` (see `Sshd.env`) is a client
whose ``~/.ssh/config`` knows the server by the name ``server.host``.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin")
DEADLINE_S = 30.0

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


class Sshd:
    """One server. ``env`` is what its sessions find in their environment (such as SLURM_CONF), ``user`` who logs in.

    A user other than the one that tests run as needs tests that run as root, and an account that is not locked
    (``usermod -p '*' NAME``). ``settings`` are further lines of sshd_config.
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
        self.folder.chmod(0o755)  # the user who logs in reads the keys that may
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
        """The environment of a client: its home, and no agent."""
        return {"HOME": str(self.home), "SSH_AUTH_SOCK": ""}

    def _write_files(self) -> None:
        self.ssh.mkdir(parents=True, mode=0o700)
        make_key(self.folder / "host_key")
        make_key(self.key)
        self.accept(self.key)
        self.trust()
        self.write_config()

    def accept(self, key: Path) -> None:
        """Let whoever has this key in."""
        with (self.folder / "authorized_keys").open("a") as file:
            file.write(key.with_name(f"{key.name}.pub").read_text())

    def trust(self) -> None:
        """The client knows the server's key."""
        kind, key, *_ = (self.folder / "host_key.pub").read_text().split()
        (self.ssh / "known_hosts").write_text(f"[{self.address}]:{self.port} {kind} {key}\n")

    def write_config(self, port: int | None = None, **more: str) -> None:
        """The client's configuration; another port is that of something between the two, ``more`` are further keys."""
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
        """Start to listen, on the same port each time."""
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
        """Listen no more, and end all sessions; what was detached in them lives on."""
        if self._process is not None:
            sessions = self.sessions
            self._process.kill()
            self._process.wait()
            self._process = None
            signal_all(sessions, signal.SIGKILL)

    def drop(self) -> None:
        """End all sessions, and go on listening."""
        signal_all(self.sessions, signal.SIGKILL)

    def freeze(self) -> None:
        """Neither sessions nor the server itself answer any more, though nothing is closed."""
        assert self._process
        signal_all([self._process.pid, *self.sessions], signal.SIGSTOP)

    def thaw(self) -> None:
        """The opposite of freeze."""
        assert self._process
        signal_all([self._process.pid, *self.sessions], signal.SIGCONT)

    @property
    def sessions(self) -> list[int]:
        """The processes of sshd that serve connections."""
        found = [self._process.pid] if self._process else []
        processes = sshd_processes()
        for parent in found:  # it grows as it goes
            found += [pid for pid, of in processes.items() if of == parent]
        return found[1:]

    @property
    def logins(self) -> int:
        """How many connections were let in so far."""
        return self.log.read_text(errors="replace").count("Accepted publickey")


def make_key(file: Path, passphrase: str = "") -> None:
    """An ed25519 key and, beside it, its public part."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "llmb-test", "-f", str(file)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def free_port(address: str = "127.0.0.1") -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def wait_for_banner(address: str, port: int, process: subprocess.Popen[bytes]) -> None:
    """Until the server speaks SSH."""
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


def sshd_processes() -> dict[int, int]:
    """All processes named sshd, each with its parent."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            pid, _, rest = Path("/proc", name, "stat").read_text().partition(" (sshd) ")
        except OSError:  # it has just ended
            continue
        if rest:
            found[int(pid)] = int(rest.split()[1])
    return found


def signal_all(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to those that are still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
