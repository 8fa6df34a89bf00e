"""The SSH server of the tests: a real server that a test can stop and start."""

from __future__ import annotations

import subprocess

import pytest
from parts.deadline import DEADLINE_S
from parts.sshd import Sshd

pytestmark = pytest.mark.real


def ssh(server: Sshd, command: str) -> subprocess.CompletedProcess[str]:
    known = (
        f"UserKnownHostsFile={server.ssh / 'known_hosts'}"  # OpenSSH reads the home directory of the account, not $HOME
    )
    words = ["ssh", "-F", str(server.ssh / "config"), "-o", known, server.host, command]
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE_S)


def test_a_session_has_the_requested_environment(sshd: Sshd) -> None:
    with Sshd(env={"SLURM_CONF": "/a b/slurm.conf", "OTHER": "1"}) as server:
        assert ssh(server, "echo $SLURM_CONF $OTHER").stdout == "/a b/slurm.conf 1\n"
    assert ssh(sshd, "echo $SLURM_CONF").stdout == "\n"


def test_a_stopped_server_starts_again_at_the_same_address(sshd: Sshd) -> None:
    sshd.stop()
    assert "Connection refused" in ssh(sshd, "true").stderr
    sshd.start()
    assert ssh(sshd, "echo again").stdout == "again\n"
