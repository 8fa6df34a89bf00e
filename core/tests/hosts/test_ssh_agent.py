"""The user's SSH agent."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from llmb.hosts.ssh import authentication


def test_an_agent_that_does_not_respond_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a forwarded one in a tmux session that outlived its login."""
    monkeypatch.setattr(authentication, "CONNECT_TIMEOUT_S", 0.1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
        agent.bind(str(tmp_path / "agent"))
        agent.listen()
        assert authentication._connect_agent(str(tmp_path / "agent")) is None
