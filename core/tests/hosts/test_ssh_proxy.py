"""Messages of a ProxyCommand that fails."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import fabric
import pytest

from llmb import TargetError
from llmb.hosts.ssh.connection import Connection, connect
from llmb.hosts.ssh.read_config_files import read_ssh_config


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """Return a connection through a proxy command that fails. It is not open."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text("Host eos\n  ProxyCommand echo no route >&2\n")
    return Connection("eos", config=fabric.Config(ssh_config=read_ssh_config(), lazy=True))


def test_the_last_message_of_a_proxy_command_is_reported(connection: Connection) -> None:
    with pytest.raises(TargetError, match=r"; the command printed: no route$"):
        connection.open()


def test_a_proxy_command_also_starts_without_room_for_its_messages(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TargetError, match="; the command printed"):
        connection.open()

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    with pytest.raises(TargetError, match=r"ProxyCommand (?!.*(the command printed|No space left))"):
        connection.open()


@pytest.mark.parametrize(
    ("config", "gateway"),
    [
        ("Host eos\n  ProxyCommand nc %h %p\nHost *\n  ProxyJump gate", "nc eos 22"),
        ("Host eos\n  ProxyCommand none\nHost *\n  ProxyJump gate", None),
        ("Host eos\n  ProxyJump none\nHost *\n  ProxyCommand nc %h %p", "nc eos 22"),
    ],
)
def test_the_first_of_proxy_command_and_proxy_jump_counts(
    connection: Connection, config: str, gateway: str | None
) -> None:
    Path("~/.ssh/config").expanduser().write_text(config)
    again = Connection("eos", config=fabric.Config(ssh_config=read_ssh_config(), lazy=True))
    assert again.gateway == gateway


@pytest.mark.parametrize(
    ("jump", "address", "written"),
    [
        ("bob@[::1]:23", ("bob", "::1", 23), "-p 23 bob@::1"),
        ("alice@[fe80::2]", ("alice", "fe80::2", 22), "alice@fe80::2"),
        ("bob@gate:23", ("bob", "gate", 23), "-p 23 bob@gate"),
    ],
)
def test_a_jump_host_may_be_an_ipv6_address(
    connection: Connection, jump: str, address: tuple[str, str, int], written: str
) -> None:
    Path("~/.ssh/config").expanduser().write_text(f"Host eos\n  ProxyJump {jump}\n")
    gateway = Connection("eos", config=fabric.Config(ssh_config=read_ssh_config(), lazy=True)).gateway
    assert (gateway.user, gateway.host, gateway.port) == address
    assert gateway.login_address == written


def test_an_ipv6_jump_host_of_all_hosts_is_reached_directly(connection: Connection) -> None:
    Path("~/.ssh/config").expanduser().write_text("Host *\n  ProxyJump [fe80::2]\n")
    gateway = Connection("eos", config=fabric.Config(ssh_config=read_ssh_config(), lazy=True)).gateway
    assert (gateway.host, gateway.gateway) == ("fe80::2", None)


def test_a_jump_host_follows_the_rules_of_openssh(connection: Connection) -> None:
    config = "Host eos\n  ProxyJump gate\nMatch tagged work\n  Port 6\nHost gate\n  Port 7\nCanonicalizeHostname yes\n"
    Path("~/.ssh/config").expanduser().write_text(config)
    gateway = Connection("eos", config=fabric.Config(ssh_config=read_ssh_config(), lazy=True)).gateway
    assert gateway.port == 7


def test_jump_hosts_that_form_a_loop_are_an_error(connection: Connection) -> None:
    config = "Host eos\n  ProxyJump gate\nHost gate\n  ProxyJump door\nHost door\n  ProxyJump gate\n"
    Path("~/.ssh/config").expanduser().write_text(config)
    with pytest.raises(TargetError, match=r"connect to eos: its jump hosts in .* form a loop"):
        connect("eos")
