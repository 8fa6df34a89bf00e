"""Files on a host over SSH: atomic writes and reads from an offset, with unusual names and content."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.network import Network
from parts.sshd import Sshd

from llmb import TargetError
from llmb.values.errors import UnreadableFileError

pytestmark = pytest.mark.real


@pytest.fixture
def host(sshd: Sshd) -> Iterator[Any]:
    from llmb.hosts.ssh.host import SshHost

    host = SshHost(sshd.host)
    yield host
    host.close()


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


NASTY = ("it's", "a b", '$(touch x)"`touch x`', "new\nline", "größe", "-rf", "*", "\\")


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_files_are_written_with_content_and_mode(host: Any, tmp_path: Path, mode: int) -> None:
    files = {f"{tmp_path}/{name}/{name}": f"text of {name}\n" for name in NASTY}
    for _ in range(2):  # the second round replaces them
        host.put(files, mode=mode)
        assert files_of(tmp_path) == {f"{name}/{name}": f"text of {name}\n".encode() for name in NASTY}
        assert {Path(file).stat().st_mode & 0o777 for file in files} == {mode}


def test_a_thousand_files_take_one_command(host: Any, sshd: Sshd, tmp_path: Path) -> None:
    host.run("true")
    scripts: list[str] = []
    shell = host._shell
    run = shell.run
    shell.run = lambda script, *more: scripts.append(script) or run(script, *more)
    host.put({f"{tmp_path}/{number}/job.sh": f"echo {number}\n" for number in range(1000)})
    assert len(files_of(tmp_path)) == 1000
    assert len(scripts) == 1


def test_files_that_are_alike_take_little_of_the_network(sshd: Sshd, tmp_path: Path) -> None:
    """An uplink of 10 Mbit/s needs 9 s for the scripts of a thousand runs, and a second if they are compressed."""
    from llmb.hosts.ssh.host import SshHost

    line = "export MODEL=llama3 STEPS=50 # a line of a job script\n"
    files = {f"{tmp_path}/{number}/job.sh": f"# job {number}\n{line * 150}" for number in range(100)}
    with Network(sshd.address, sshd.port) as network:
        sshd.write_config(port=network.port)
        host = SshHost(sshd.host)
        host.run("true")
        before = network.bytes_up
        host.put(files)
        host.close()
        sent = network.bytes_up - before
    sshd.write_config()
    assert files_of(tmp_path)["7/job.sh"].decode() == files[f"{tmp_path}/7/job.sh"]
    assert sent < sum(map(len, files.values())) / 10


def test_a_reader_never_sees_a_part_of_a_file(host: Any, tmp_path: Path) -> None:
    """An open file keeps its content, because the new file replaces it by name only."""
    file = tmp_path / "job.sh"
    host.put({str(file): "old\n" * 1000})
    with file.open() as old:
        host.put({str(file): "new\n"})
        assert old.read() == "old\n" * 1000
    assert file.read_text() == "new\n"


@pytest.mark.smoke
def test_a_failed_write_is_an_error_and_leaves_no_files(host: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TargetError, match=r"cannot write on cluster: .*/file/.*: Not a directory"):
        host.put({f"{tmp_path}/good": "x", f"{tmp_path}/file/bad": "x"})
    assert files_of(tmp_path) == {"file": b""}
    assert host.run("echo next").stdout == "next\n"


@pytest.mark.slow
def test_files_are_written_and_read_without_perl(tmp_path: Path, start_server: Any) -> None:
    from llmb.hosts.ssh.host import SshHost

    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "cat", "dd", "env", "grep", "gzip", "head", "mv", "stat", "tar", "timeout", "rm", "xargs"):
        (tools / name).symlink_to(str(shutil.which(name)))
    (tmp_path / ".bash_profile").write_text(f"export PATH={tools}\n")
    server = start_server(env={"HOME": str(tmp_path)})
    host = SshHost(server.host)
    assert host.run("command -v perl").exit_code == 1
    placed = {f"{tmp_path}/out/{name}": name.encode() for name in NASTY}
    host.put({path: data.decode() for path, data in placed.items()})
    beyond = {path: data[1:] for path, data in placed.items() if data[1:]}
    assert host.read({**dict.fromkeys(placed, 1), f"{tmp_path}/none": 0}) == beyond
    host.close()
    assert files_of(tmp_path / "out") == {name: name.encode() for name in NASTY}


def test_a_locale_that_the_host_lacks_is_no_error(tmp_path: Path, start_server: Any, connect: Any) -> None:
    """Bash warns of such a locale on standard error."""
    (tmp_path / "log").write_text("step 1\n")
    start_server(env={"LC_ALL": "xx_YY.UTF-8"})
    host = connect()
    assert host.run("echo $LC_ALL; echo reason >&2").stderr == "reason\n"
    assert host.read({f"{tmp_path}/log": 0}) == {f"{tmp_path}/log": b"step 1\n"}


def test_only_new_bytes_are_read(host: Any, tmp_path: Path) -> None:
    data = os.urandom(100_000) + b"llmb-\n\0\r\n0 5\n"
    logs = {f"{tmp_path}/{name}": offset for name, offset in zip(NASTY, (0, 1, 99_999, 5, 6, 7, 8, 9), strict=True)}
    for log in logs:
        Path(log).write_bytes(data)
    (tmp_path / "old").write_bytes(data)
    more = {f"{tmp_path}/none": 0, f"{tmp_path}/nowhere/log": 0, f"{tmp_path}/old": len(data)}
    assert host.read(logs | more) == {log: data[offset:] for log, offset in logs.items()}


def test_a_long_log_is_read_in_parts(host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb.hosts.ssh.host.read_limit", lambda _files: 4)
    log = tmp_path / "log"
    log.write_bytes(b"0123456789")
    assert host.read({str(log): 3}) == {str(log): b"3456"}


def test_a_read_error_is_not_an_absent_file(host: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, why in ((tmp_path, "Is a directory"), (tmp_path / "file" / "log", "Not a directory")):
        with pytest.raises(UnreadableFileError, match=rf"cannot read on cluster: .*{path}.*: {why}"):
            host.read({str(path): 0, f"{tmp_path}/file": 0})


def test_following_a_log_transfers_little_more_than_the_log(host: Any, sshd: Sshd, tmp_path: Path) -> None:
    log, size = tmp_path / "log", 0
    try:
        with Network(sshd.address, sshd.port) as network:
            sshd.write_config(port=network.port)
            host.run("true")
            before = network.bytes
            with log.open("ab", buffering=0) as file:
                for _ in range(20):
                    file.write(os.urandom(50_000))
                    size += len(host.read({str(log): size})[str(log)])
            assert size == 1_000_000
            assert network.bytes - before < 1.1 * size
            host.close()
    finally:
        sshd.write_config()
