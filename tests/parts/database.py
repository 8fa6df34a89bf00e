"""A MariaDB server on a free port, for the accounting of a Slurm cluster."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from parts.deadline import DEADLINE_S
from parts.ports import free_port


class Database:
    """MariaDB server with its own folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "database"
        self._password = secrets.token_hex(16)
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def slurm_settings(self) -> dict[str, object]:
        """Lines of slurmdbd.conf that name this server."""
        return {
            "StorageType": "accounting_storage/mysql",
            "StorageHost": "127.0.0.1",
            "StoragePort": self._port,
            "StorageUser": "slurm",
            "StoragePass": self._password,
            "StorageLoc": "slurm_acct_db",
        }

    def start(self) -> None:
        """Start the server, with an account for Slurm."""
        self._folder.mkdir()
        init = self._folder / "init.sql"
        init.write_text(
            f"CREATE USER IF NOT EXISTS slurm@'127.0.0.1' IDENTIFIED BY '{self._password}';\n"
            "GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';\n"
        )
        init.chmod(0o600)
        data = self._folder / "data"
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db"]
        done = subprocess.run(
            install, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert done.returncode == 0, done.stdout
        options = {
            "datadir": data,
            "socket": self._folder / "sock",
            "pid-file": self._folder / "pid",
            "log-error": self._folder / "log",
            "bind-address": "127.0.0.1",
            "port": self._port,
            "user": "root",
            "init-file": init,
            "innodb-flush-log-at-trx-commit": 0,
            "innodb-buffer-pool-size": "64M",
            "innodb-lock-wait-timeout": 900,
        }
        server = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin") or "mariadbd"
        words = [server, "--no-defaults", *(f"--{name}={value}" for name, value in options.items())]
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + DEADLINE_S
        while not self._answers():
            assert self._process.poll() is None, f"MariaDB ended at once; see {self._folder}/log"
            assert time.monotonic() < end, "MariaDB does not answer"
            time.sleep(0.05)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def stop(self) -> None:
        """Stop the server. Its data are in its folder."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
