"""The SSH server that tests use is a real one that can be stopped, started and cut."""

from __future__ import annotations

import subprocess

import pytest
from parts.sshd import Sshd

pytestmark = pytest.mark.real


def ssh(server: Sshd, command: str) -> subprocess.CompletedProcess[str]:
    known = f"UserKnownHostsFile={server.ssh / 'known_hosts'}"  # OpenSSH takes the home of the account, not $HOME
    words = ["ssh", "-F", str(server.ssh / "config"), "-o", known, server.host, command]
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30)


def test_a_session_has_the_environment_that_was_asked_for(sshd: Sshd) -> None:
    with Sshd(env={"SLURM_CONF": "/a b/slurm.conf", "OTHER": "1"}) as server:
        assert ssh(server, "echo $SLURM_CONF $OTHER").stdout == "/a b/slurm.conf 1\n"
    assert ssh(sshd, "echo $SLURM_CONF").stdout == "\n"


def test_it_can_be_stopped_and_started_again_at_the_same_place(sshd: Sshd) -> None:
    sshd.stop()
    assert "Connection refused" in ssh(sshd, "true").stderr
    sshd.start()
    assert ssh(sshd, "echo again").stdout == "again\n"
