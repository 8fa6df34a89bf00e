"""Keys of SSH with a real server: the key of the host, and the keys of the user."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from parts.command_line import error_line
from parts.sshd import Sshd, make_key

from llmb import TargetError

pytestmark = pytest.mark.real


@contextmanager
def running_agent(socket_file: Path, key: Path) -> Iterator[None]:
    """Run an agent that has a key."""
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket_file)], stdout=subprocess.DEVNULL)
    try:
        env = os.environ | {"SSH_AUTH_SOCK": str(socket_file)}
        while subprocess.run(["ssh-add", "-q", str(key)], env=env, stderr=subprocess.DEVNULL).returncode == 2:
            assert agent.poll() is None
        yield
    finally:
        agent.terminate()
        agent.wait()


@pytest.mark.parametrize("setting", ["", 'IdentityAgent "{}"', "IdentityAgent SSH_AUTH_SOCK", "IdentityAgent $OURS"])
def test_an_encrypted_key_in_the_agent_is_accepted(
    setting: str, client: Sshd, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket_file = client.folder / "agent"
    with running_agent(socket_file, client.key):
        subprocess.run(["ssh-keygen", "-q", "-p", "-N", "passphrase", "-P", "", "-f", str(client.key)], check=True)
        with (client.ssh / "config").open("a") as config:
            config.write(f"\nHost *\n  {setting.format(socket_file)}\n" if setting else "")
        named = "{}" in setting
        monkeypatch.setenv("OURS" if "OURS" in setting else "SSH_AUTH_SOCK", "/nowhere" if named else str(socket_file))
        assert connect().run("echo there").stdout == "there\n"


@pytest.fixture
def two_attempts(monkeypatch: pytest.MonkeyPatch, start_server: Any) -> Sshd:
    """Start a server that accepts no key yet, and ends a connection after two keys. An agent's socket is named."""
    server = start_server(settings={"MaxAuthTries": "2"})
    monkeypatch.setenv("SSH_AUTH_SOCK", str(server.folder / "agent"))
    (server.folder / "authorized_keys").unlink()
    return server


def test_a_key_of_the_agent_that_is_in_a_default_file_is_offered_once(two_attempts: Sshd, connect: Any) -> None:
    server = two_attempts
    make_key(server.ssh / "id_rsa")
    server.accept(server.ssh / "id_rsa")
    config = (server.ssh / "config").read_text().splitlines()
    (server.ssh / "config").write_text("\n".join(line for line in config if "IdentityFile" not in line) + "\n")
    with running_agent(server.folder / "agent", server.key):
        assert connect().run("echo there").stdout == "there\n"


def test_a_key_of_the_agent_that_is_in_a_named_file_is_offered_once(two_attempts: Sshd, connect: Any) -> None:
    """The public key is not beside the file, so only the private key shows that both are the same."""
    server = two_attempts
    make_key(server.folder / "accepted")
    server.accept(server.folder / "accepted")
    server.key.with_name(f"{server.key.name}.pub").unlink()
    with running_agent(server.folder / "agent", server.key):
        subprocess.run(["ssh-add", "-q", str(server.folder / "accepted")], check=True)
        assert connect().run("echo there").stdout == "there\n"


def test_the_certificate_beside_a_key_is_accepted(client: Sshd, connect: Any) -> None:
    authority, user = client.folder / "authority", client.user
    make_key(authority)
    command = ["ssh-keygen", "-q", "-s", str(authority), "-I", user, "-n", user, f"{client.key}.pub"]
    subprocess.run(command, check=True)
    (client.folder / "authorized_keys").write_text(f"cert-authority {authority.with_suffix('.pub').read_text()}")
    assert connect().run("echo there").stdout == "there\n"


def certify(client: Sshd) -> Path:
    """Sign the client's key for its user, as ~/.ssh/site.cert, and return the private key of the authority."""
    authority = client.folder / "authority"
    make_key(authority)
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-I", client.user, "-n", client.user, f"{client.key}.pub"]
    subprocess.run(sign, check=True)
    (client.ssh / "id_ed25519-cert.pub").rename(client.ssh / "site.cert")
    return authority


@pytest.mark.parametrize("key", ["file", "agent"])
def test_a_certificate_file_is_used_with_its_key(
    key: str, client: Sshd, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = certify(client)
    (client.folder / "authorized_keys").write_text(f"cert-authority {authority.with_suffix('.pub').read_text()}")
    with pytest.raises(TargetError, match="the server rejected the key"):
        connect().run("true")
    client.write_config(CertificateFile="~/.ssh/site.cert")
    assert (client.ssh / "site.cert").exists()
    if key == "file":
        assert connect().run("echo there").stdout == "there\n"
        return
    socket_file = client.folder / "agent"
    with running_agent(socket_file, client.key):
        client.key.unlink()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket_file))
        assert connect().run("echo there").stdout == "there\n"


def test_a_key_is_accepted_without_the_certificate_that_the_server_does_not_trust(client: Sshd, connect: Any) -> None:
    certify(client)
    client.write_config(CertificateFile="~/.ssh/site.cert")
    assert connect().run("echo there").stdout == "there\n"


def test_a_rejected_key_and_its_certificate_count_as_one(client: Sshd, connect: Any) -> None:
    certify(client)
    client.write_config(CertificateFile="~/.ssh/site.cert")
    (client.folder / "authorized_keys").write_text("")
    with pytest.raises(TargetError, match="the server rejected the key of user"):
        connect().run("true")


def accept(text: str) -> None:
    """Run the command at the end of a message. A terminal keeps it on one line because it is in backquotes."""
    message, command, end = text.split("`")
    assert (message.endswith("accept it with "), end) == (True, "")
    subprocess.run(["bash", "-c", command], check=True, capture_output=True)


@pytest.mark.smoke
def test_an_unknown_host_key_is_rejected_with_the_command_that_accepts_it(client: Sshd, connect: Any) -> None:
    (client.ssh / "known_hosts").unlink()
    with pytest.raises(TargetError) as raised:
        connect().run("true")
    text = error_line(raised)
    assert "its host key ssh-ed25519 SHA256:" in text
    assert " is unknown; compare it with what the owner of the host publishes, " in text
    accept(text)
    assert connect().run("echo there").stdout == "there\n"


@pytest.mark.parametrize("folder", ["new", "old"])
def test_the_command_that_accepts_a_host_key_completes_the_last_line_and_creates_the_folder(
    folder: str, client: Sshd, connect: Any
) -> None:
    known = client.ssh / folder / "known_hosts"
    client.write_config(UserKnownHostsFile=str(known))
    if folder == "old":
        known.parent.mkdir()
        known.write_text("other.example ssh-ed25519 AAAA")
    with pytest.raises(TargetError) as raised:
        connect().run("true")
    accept(error_line(raised))
    assert connect().run("echo there").stdout == "there\n"
    assert folder == "new" or known.read_text().startswith("other.example ssh-ed25519 AAAA\n")


@pytest.mark.smoke
def test_a_changed_host_key_is_rejected_with_the_command_that_accepts_it(client: Sshd, connect: Any) -> None:
    make_key(client.folder / "other")
    known = client.ssh / "known_hosts"
    known.write_text(f"# ours\n[{client.address}]:{client.port} {(client.folder / 'other.pub').read_text()}")
    with pytest.raises(TargetError) as raised:
        connect().run("true")
    text = error_line(raised)
    assert "its host key has changed from SHA256:" in text
    assert f" ({known}:2) to ssh-ed25519 SHA256:" in text
    assert "which may be an attack" in text
    accept(text)
    assert connect().run("echo there").stdout == "there\n"


@pytest.mark.parametrize("names", ["[127.0.0.*]:*", "|hashed|", "alias,other"])
def test_known_hosts_is_read_as_by_openssh(client: Sshd, connect: Any, names: str) -> None:
    known = client.ssh / "known_hosts"
    if names == "|hashed|":
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
        assert str(client.port) not in known.read_text()
    else:
        known.write_text(f"@cert-authority * nothing\n{names} {known.read_text().partition(' ')[2]}")
    if names == "alias,other":
        client.write_config(HostKeyAlias="alias")
    assert connect().run("echo there").stdout == "there\n"


@pytest.mark.parametrize(
    "line",
    [
        "* ssh-ed25519 AAAA",
        "* ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG==",
        "* ssh-rsa AAAAB3NzaC1yc2EAAAAD",
        "* ssh-ed25519 größe",
        "* ssh-unknown AAAA",
        "*",
        "|1|notbase64|x ssh-ed25519 AAAA",
        "|1||| ssh-ed25519 AAAA",
        "|1|aGk=",
        "@revoked",
        "@unknown * ssh-ed25519 AAAA",
        "\x00\x1b[31m \u2028 x",
        "x" * 100_000,
    ],
)
def test_a_malformed_line_of_known_hosts_is_ignored_as_by_openssh(client: Sshd, connect: Any, line: str) -> None:
    known = client.ssh / "known_hosts"
    known.write_text(f"{line}\n{known.read_text()}{line}\n", encoding="utf-8")
    files = ["-F", str(client.ssh / "config"), "-o", f"UserKnownHostsFile={known}"]
    answer = subprocess.run(["ssh", *files, "-o", "BatchMode=yes", client.host, "echo there"], capture_output=True)
    assert answer.stdout == b"there\n"
    assert connect().run("echo there").stdout == "there\n"


def test_a_revoked_host_key_is_rejected(client: Sshd, connect: Any) -> None:
    known = client.ssh / "known_hosts"
    known.write_text(f"{known.read_text()}@revoked * {known.read_text().partition(' ')[2]}")
    with pytest.raises(TargetError, match="is revoked in"):
        connect().run("true")


def test_a_revoked_key_of_the_same_host_is_not_its_known_key(client: Sshd, connect: Any) -> None:
    make_key(client.folder / "stolen")
    known = client.ssh / "known_hosts"
    key = known.read_text().partition(" ")[2]
    known.write_text(f"@revoked * {(client.folder / 'stolen.pub').read_text()}")
    with pytest.raises(TargetError, match=r"its host key \S+ \S+ is unknown"):
        connect().run("true")
    known.write_text(f"{known.read_text()}{client.address} {key}")  # for each port, as OpenSSH reads it
    assert connect().run("echo there").stdout == "there\n"


@pytest.mark.parametrize("written", ["cluster", "USER@cluster", "USER@cluster:PORT"])
def test_a_rejected_key_is_reported(written: str, client: Sshd, connect: Any) -> None:
    make_key(client.ssh / "other")
    client.write_config(IdentityFile=str(client.ssh / "other"))
    with pytest.raises(TargetError) as raised:
        connect(written.replace("USER", client.user).replace("PORT", str(client.port))).run("true")
    rejected = (
        f"the server rejected the key of user {client.user}; add the public key to ~/.ssh/authorized_keys there: "
    )
    host = f"{client.user}@cluster" if "USER" in written else "cluster"
    port = f"-p {client.port} " if "PORT" in written else ""
    assert error_line(raised).endswith(f"{rejected}`ssh-copy-id -i {client.ssh}/other {port}{host}`")


def test_an_encrypted_key_without_an_agent_is_reported(client: Sshd, connect: Any) -> None:
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "passphrase", "-P", "", "-f", str(client.key)], check=True)
    with pytest.raises(TargetError) as raised:
        connect().run("true")
    message = f"the key {client.key} is encrypted and not in the agent; add it with `ssh-add {client.key}`"
    assert error_line(raised).endswith(message)


@pytest.mark.parametrize("kind", ["of a hardware token", "of PuTTY", "public"])
def test_a_key_that_llmb_cannot_read_is_reported(client: Sshd, connect: Any, kind: str) -> None:
    lines = client.key.read_text().split("\n")
    content = base64.b64decode("".join(lines[1:-2])).replace(b"ssh-ed25519", b"sk-ed25519x")  # a type without support
    texts = {
        "of a hardware token": "\n".join([lines[0], base64.b64encode(content).decode(), *lines[-2:]]),
        "of PuTTY": "PuTTY-User-Key-File-3: ssh-ed25519\n",
    }
    file = client.ssh / ("other.pub" if kind == "public" else "other")
    file.write_text(texts.get(kind, "ssh-ed25519 AAAA"))
    client.write_config(IdentityFile=str(file))
    with pytest.raises(TargetError) as raised:
        connect().run("true")
    remedy = f"add it to the agent with `ssh-add {client.ssh}/other`, or name another key as IdentityFile"
    assert f"llmb cannot read the key {file}; {remedy}" in error_line(raised)
    client.write_config(IdentityFile=f"{file}\n  IdentityFile {client.key}")
    assert connect().run("echo there").stdout == "there\n"


def test_a_missing_key_is_reported(client: Sshd, connect: Any) -> None:
    client.write_config(IdentityFile="~/.ssh/none")
    with pytest.raises(TargetError) as raised:
        connect().run("true")
    assert f"no key found in {client.ssh}/none or in an agent" in error_line(raised)
