"""A host over SSH with a real server: commands, connections, keys, and every failure to connect."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.command_line import error_line
from parts.deadline import DEADLINE_S, wait_until
from parts.network import Network
from parts.sshd import Sshd, signal_all

from llmb import TargetError, UnknownOutcomeError

pytestmark = pytest.mark.real


@pytest.fixture
def host(sshd: Sshd, connect: Any) -> Any:
    return connect(sshd.host)


# commands


@pytest.mark.smoke
def test_a_failed_command_returns_its_exit_code_and_output(host: Any) -> None:
    answer = host.run("echo größe; echo bad >&2; exit 3")
    assert (answer.exit_code, answer.stdout, answer.stderr) == (3, "größe\n", "bad\n")


def test_many_commands_take_one_connection_and_one_login_shell(host: Any, sshd: Sshd) -> None:
    before = sshd.logins
    assert len({host.run("echo $PPID; exec 3>&1; cat").stdout for _ in range(5)}) <= 5
    host.put({str(sshd.folder / "file"): "text"})
    assert sshd.logins == before + 1


def test_targets_of_one_host_share_its_connection(sshd: Sshd) -> None:
    from llmb import Target
    from llmb.hosts.host_connections import HostConnections

    hosts, before = HostConnections(), sshd.logins
    for workdir in ("/a", "/b"):
        hosts.host_of(Target(scheduler="x", host=sshd.host, workdir=workdir, options=None)).run("true")
    hosts.close()
    assert sshd.logins == before + 1


@pytest.mark.parametrize("beside", [None, "cluster"])
def test_peers_share_connections_and_are_closed_with_the_host(sshd: Sshd, beside: str | None) -> None:
    from llmb import Target
    from llmb.hosts.host_connections import HostConnections

    hosts, before = HostConnections(), sshd.logins
    host = hosts.host_of(Target(scheduler="x", host=beside, workdir="/a", options=None))
    assert [host.peer(sshd.host).run("echo here").stdout for _ in range(2)] == ["here\n", "here\n"]
    assert host.run("true").exit_code == 0
    assert sshd.logins == before + 1
    hosts.close()
    wait_until(lambda: sshd.sessions == [])


def test_large_outputs_arrive_completely(host: Any) -> None:
    answer = host.run("head -c 20000000 /dev/zero | tr '\\0' x; head -c 5000000 /dev/zero | tr '\\0' y >&2")
    assert (len(answer.stdout), len(answer.stderr)) == (20_000_000, 5_000_000)


def test_a_command_cannot_read_the_next_command(host: Any) -> None:
    assert host.run("cat; read line; echo end").stdout == "end\n"
    assert host.run("echo next").stdout == "next\n"


def test_commands_are_in_no_process_list(host: Any) -> None:
    """Return all command lines of the machine, including that of the script itself."""
    listing = host.run("word=un; word=${word}seen; : secret-$word; ps -eww -o args").stdout
    assert "bash" in listing
    assert "secret-" not in listing


def test_small_packets_are_sent_immediately(host: Any) -> None:
    host.run("true")
    transport = host._connection.transport
    assert transport.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# connecting


def test_user_host_and_port_are_taken_from_the_name(client: Sshd, connect: Any) -> None:
    (client.ssh / "config").unlink()
    assert connect(f"{client.user}@{client.address}:{client.port}").run("id -un").stdout == f"{client.user}\n"


def test_included_files_are_read(client: Sshd, connect: Any) -> None:
    (client.ssh / "config.d").mkdir()
    (client.ssh / "config").rename(client.ssh / "config.d" / "cluster")
    (client.ssh / "config").write_text("Host other\n  Port 1\n  Include config.d/*\n  User nobody\n")
    (client.ssh / "config").write_text("Include config.d/*\nHost *\n  Port 1\n")
    assert connect().run("echo there").stdout == "there\n"


def test_a_section_continues_after_an_include(client: Sshd, connect: Any) -> None:
    (client.ssh / "more").write_text("Host unrelated\n  Port 1\n")
    config = (client.ssh / "config").read_text()
    head, *keys = config.splitlines()
    (client.ssh / "config").write_text("\n".join([head, "  Include more", *keys]) + "\n")
    assert connect().run("echo there").stdout == "there\n"


@pytest.fixture
def jump(client: Sshd) -> Iterator[Sshd]:
    """Start a second server as jump host to the first."""
    with Sshd(address="127.0.0.2", host="jump") as server:
        server.accept(client.key)
        (client.ssh / "known_hosts").write_text(
            (client.ssh / "known_hosts").read_text() + (server.ssh / "known_hosts").read_text()
        )
        jump_config = (server.ssh / "config").read_text().replace(str(server.key), str(client.key))
        config = (client.ssh / "config").read_text() + "  ProxyJump jump\n"
        (client.ssh / "config").write_text(config + jump_config)
        yield server


@pytest.mark.smoke
def test_a_jump_host_is_used(client: Sshd, jump: Sshd, connect: Any) -> None:
    assert connect().run("echo $SSH_CONNECTION").stdout.split()[3] == str(client.port)
    assert (jump.logins, client.logins) == (1, 1)


def test_a_jump_host_for_all_hosts_is_not_reached_through_itself(client: Sshd, jump: Sshd, connect: Any) -> None:
    config = (client.ssh / "config").read_text().replace("  ProxyJump jump\n", "")
    (client.ssh / "config").write_text(config + "Host *\n  ProxyJump jump\n")
    assert connect().run("echo there").stdout == "there\n"
    assert jump.logins == 1


def test_a_jump_host_with_an_unknown_key_is_rejected_and_named(client: Sshd, jump: Sshd, connect: Any) -> None:
    client.trust()
    with pytest.raises(
        TargetError, match=rf"^cannot connect to jump \(127.0.0.2 port {jump.port}\): its host key .* is unknown"
    ):
        connect().run("true")


def test_a_jump_host_that_cannot_reach_the_host_is_reported(client: Sshd, jump: Sshd, connect: Any) -> None:
    client.stop()
    with pytest.raises(TargetError, match=r"^cannot connect to cluster .*: the jump host jump cannot reach it"):
        connect().run("true")


def test_a_proxy_command_is_used(client: Sshd, connect: Any) -> None:
    relay = client.folder / "relay.py"
    relay.write_text(
        "import socket, sys, threading, os\n"
        f"open({str(client.folder / 'used')!r}, 'w').close()\n"
        "far = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while data := os.read(0, 65536): far.sendall(data)\n"
        "    far.shutdown(socket.SHUT_WR)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while data := far.recv(65536): os.write(1, data)\n"
    )
    client.write_config(ProxyCommand=f"python3 {relay} %h %p")
    assert connect().run("echo there").stdout == "there\n"
    assert (client.folder / "used").exists()


def test_a_failed_proxy_command_is_reported(client: Sshd, connect: Any) -> None:
    client.write_config(ProxyCommand="false")
    with pytest.raises(TargetError, match=r"\(through ProxyCommand false\)"):
        connect().run("true")


def test_the_last_message_of_a_failed_proxy_command_is_reported(client: Sshd, connect: Any) -> None:
    client.write_config(ProxyCommand="sh -c 'echo trying >&2; echo no ticket for cluster: run kinit >&2; exit 1'")
    with pytest.raises(TargetError) as raised:
        connect().run("true")
    assert error_line(raised).endswith("; the command printed: no ticket for cluster: run kinit")


def test_a_refused_connection_is_reported(client: Sshd, connect: Any) -> None:
    client.stop()
    with pytest.raises(TargetError) as raised:
        connect().run("true")
    place = f"cluster ({client.address} port {client.port})"
    assert error_line(raised) == f"cannot connect to {place}: connection refused; no server listens on this port"


@pytest.mark.parametrize("name", ["$(touch {made})", "-oProxyCommand=x", "a\nb", ""])
def test_an_invalid_name_reaches_no_command_of_the_configuration(
    client: Sshd, connect: Any, name: str, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    (client.ssh / "config").write_text("Host *\n  ProxyCommand nc %h %p\n")
    with pytest.raises(TargetError, match=r"invalid value .* for a host; expected"):
        connect(name.format(made=made)).run("true")
    assert not made.exists()


def test_an_unknown_host_is_reported(client: Sshd, connect: Any) -> None:
    with pytest.raises(TargetError, match=r"cannot connect to nowhere.invalid: unknown host name"):
        connect("nowhere.invalid").run("true")


@pytest.mark.parametrize("greeting", [b"", b"220 mail.example ESMTP\r\n" * 200])
def test_a_server_without_an_ssh_greeting_is_reported(client: Sshd, connect: Any, greeting: bytes) -> None:
    accepted = []

    def greet() -> None:
        accepted.append(listener.accept()[0])
        accepted[0].sendall(greeting)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(DEADLINE_S)
        greeter = threading.Thread(target=greet, daemon=True)
        greeter.start()
        client.write_config(port=listener.getsockname()[1], ConnectTimeout="1")
        with pytest.raises(
            TargetError, match="the server sent no SSH greeting; it is overloaded, or it is no SSH server"
        ):
            connect().run("true")
        greeter.join()
        accepted[0].close()


@pytest.mark.parametrize(
    ("line", "message"),
    [("nonsense", r"\.ssh/config: invalid SSH configuration"), ("Port x", r"invalid setting in ~/\.ssh/config: .*'x'")],
)
def test_an_invalid_configuration_is_reported(client: Sshd, connect: Any, line: str, message: str) -> None:
    (client.ssh / "config").write_text(f"{line}\n")
    with pytest.raises(TargetError, match=message):
        connect().run("true")


def test_a_server_may_offer_its_key_exchange_by_the_standard_name_only(start_server: Any, connect: Any) -> None:
    start_server(settings={"KexAlgorithms": "curve25519-sha256"})
    assert connect().run("echo here").stdout == "here\n"


@pytest.mark.parametrize(
    ("setting", "value", "what", "remedy"),
    [
        ("KexAlgorithms", "sntrup761x25519-sha512@openssh.com", "key exchange", "curve25519-sha256"),
        ("Ciphers", "chacha20-poly1305@openssh.com", "cipher", "aes256-gcm@openssh.com"),
        ("MACs", "umac-128-etm@openssh.com", "MAC", "hmac-sha2-256-etm@openssh.com"),
    ],
)
def test_algorithms_that_llmb_does_not_support_are_reported_with_a_remedy_that_works(
    start_server: Any, connect: Any, setting: str, value: str, what: str, remedy: str
) -> None:
    ciphers = {"Ciphers": "aes256-ctr"} if setting == "MACs" else {}  # others need no MAC
    start_server(settings={setting: value, **ciphers})
    with pytest.raises(TargetError, match=f"llmb supports no {what} that .* add {remedy} to {setting} in"):
        connect().run("true")
    start_server(settings={setting: f"{value},{remedy}", **ciphers})
    assert connect().run("echo here").stdout == "here\n"


def test_the_connect_timeout_is_that_of_the_configuration(client: Sshd, connect: Any) -> None:
    client.write_config(ConnectTimeout="1m30")
    assert connect().run("echo there").stdout == "there\n"
    client.write_config(ConnectTimeout="soon")
    with pytest.raises(TargetError, match="invalid setting for ssh: invalid time 'soon'"):
        connect().run("true")


def test_the_configuration_sets_the_interval_of_keepalive_messages(
    client: Sshd, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb.hosts.ssh.connection.KEEPALIVE_S", 3600)
    with Network(client.address, client.port) as network:
        client.write_config(port=network.port, ServerAliveInterval="1")
        connect().run("true")
        for _ in range(3):  # the first bytes may be the last ones of the command
            sent = network.bytes_up
            assert wait_until(lambda sent=sent: network.bytes_up > sent)


# failures during a command


def in_the_middle(host: Any, folder: Path, act: Callable[[], None]) -> None:
    """Start a command, call ``act`` once the command runs, and raise the error of the command."""
    begun, failed = folder / "begun", list[TargetError]()

    def run() -> None:
        try:
            host.run(f"touch {begun}; until [ -e {folder}/gate ]; do sleep 0.05; done; exit 5")
        except TargetError as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: begun.exists() or not thread.is_alive())
    act()
    thread.join(DEADLINE_S)
    (folder / "gate").touch()
    assert not thread.is_alive()
    [error] = failed
    raise error


@pytest.mark.smoke
def test_a_dropped_connection_is_an_unknown_outcome_and_is_opened_again(
    client: Sshd, connect: Any, tmp_path: Path
) -> None:
    host = connect()
    with pytest.raises(UnknownOutcomeError) as dropped:
        in_the_middle(host, tmp_path, client.drop)
    assert error_line(dropped).startswith("cluster: the connection was lost")
    assert error_line(dropped).endswith("it is unknown whether the command ran")
    assert host.run("echo again").stdout == "again\n"


def test_the_error_of_a_lost_connection_contains_no_output_of_the_command(host: Any) -> None:
    with pytest.raises(UnknownOutcomeError) as lost:
        host.run(
            "parent() { ps -o ppid= -p $1; }; timer=$PPID; between=$(parent $timer); login=$(parent $between);"
            "echo token=correct-horse; kill -KILL $login $between $timer $$"
        )
    assert error_line(lost) == (
        "cluster: the connection was lost (the login shell ended); it is unknown whether the command ran"
    )


def test_a_connection_lost_between_commands_is_opened_again(client: Sshd, connect: Any) -> None:
    host = connect()
    host.run("true")
    client.drop()
    wait_until(lambda: not host._connection.is_connected)
    assert host.run("echo again").stdout == "again\n"
    client.stop()
    wait_until(lambda: not host._connection.is_connected)
    with pytest.raises(TargetError, match="connection refused"):
        host.run("true")
    client.start()
    assert host.run("echo again").stdout == "again\n"


@pytest.fixture
def expect_response(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Probe a server after a moment of silence. Return a function that sets how many seconds it has to respond."""
    monkeypatch.setattr("llmb.hosts.ssh.connection_watchdog.SILENCE_S", 0.1)
    return lambda seconds: monkeypatch.setattr("llmb.hosts.ssh.connection_watchdog.RESPONSE_S", seconds)


def test_a_silent_network_ends_a_command(
    client: Sshd, connect: Any, tmp_path: Path, expect_response: Callable[[float], None]
) -> None:
    with Network(client.address, client.port) as network:
        client.write_config(port=network.port)

        def silence() -> None:
            network.silence()
            expect_response(0.1)

        with pytest.raises(UnknownOutcomeError, match="the server stopped responding"):
            in_the_middle(connect(), tmp_path, silence)


def test_a_frozen_server_ends_a_command(
    client: Sshd, connect: Any, tmp_path: Path, expect_response: Callable[[float], None]
) -> None:
    def freeze() -> None:
        client.freeze()
        expect_response(0.1)

    try:
        with pytest.raises(UnknownOutcomeError, match="the server stopped responding"):
            in_the_middle(connect(), tmp_path, freeze)
    finally:
        client.thaw()


def test_a_connection_that_became_silent_while_idle_is_opened_again(
    client: Sshd, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb.hosts.ssh.shell.SILENCE_S", 0.0)
    host = connect()
    host.run("true")
    sessions = client.sessions
    signal_all(sessions, signal.SIGSTOP)
    monkeypatch.setattr("llmb.hosts.ssh.connection_watchdog.RESPONSE_S", 0.1)
    assert host.run("echo again").stdout == "again\n"
    signal_all(sessions, signal.SIGKILL)


def test_a_command_without_output_is_not_a_dead_connection(
    host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llmb.hosts.ssh import connection_watchdog

    host.run("true")
    gate, probes = tmp_path / "gate", list[bool]()
    responds = connection_watchdog.responds

    def respond(transport: Any) -> bool:
        probes.append(responds(transport))
        gate.touch()
        return probes[-1]

    monkeypatch.setattr(connection_watchdog, "responds", respond)
    monkeypatch.setattr(connection_watchdog, "SILENCE_S", 0.1)
    assert host.run(f"until [ -e {gate} ]; do sleep 0.02; done; echo done").stdout == "done\n"
    assert set(probes) == {True}


def test_a_command_that_exceeds_its_timeout_is_an_unknown_outcome(host: Any, tmp_path: Path) -> None:
    with pytest.raises(UnknownOutcomeError, match=r"no response within 0\.3 s"):
        host.run("sleep 1000", timeout_s=0.3)
    assert host.run("echo again").stdout == "again\n"


def test_the_output_of_an_interrupted_command_is_discarded(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    host.run("true")
    with monkeypatch.context() as impatient:
        impatient.setattr(host._shell, "_receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            host.run("echo first")
    assert host.run("echo second").stdout == "second\n"
