"""The local machine as a host."""

from __future__ import annotations

import os
import pwd
import shlex
import subprocess
from pathlib import Path

import pytest

from llmb.files import resource_text
from llmb.hosts import local_host as local
from llmb.hosts.local_host import LocalHost
from llmb.hosts.ssh.shell import COMMAND
from llmb.values.errors import TargetError, UnknownOutcomeError, UnreadableFileError


def test_a_failed_command_returns_its_exit_code_and_output() -> None:
    result = LocalHost().run("echo out; echo bad >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "bad\n")


def test_text_is_utf_8_in_every_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    assert LocalHost().run("echo 'größe'").stdout == "größe\n"


def test_bash_reads_the_complete_script_before_it_starts() -> None:
    """A script that was truncated because llmb was killed does nothing."""
    cut = subprocess.run(["bash", "-s"], input="{\necho started\n", text=True, capture_output=True)
    assert cut.stdout == ""


def test_a_command_runs_in_its_own_session() -> None:
    sid, pid = LocalHost().run("echo $(ps -o sid= -p $$) $$").stdout.split()
    assert sid == pid


def test_a_timeout_kills_all_processes_and_is_an_unknown_outcome(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    script = f"exec 9>{alive}; flock 9; bash -c 'sleep 1000' & wait"
    with pytest.raises(UnknownOutcomeError, match="did not end within"):
        LocalHost().run(script, timeout_s=0.3)
    assert LocalHost().run(f"flock {alive} true").exit_code == 0  # a killed process may hold the lock briefly


def test_output_is_returned_byte_by_byte() -> None:
    assert LocalHost().run(r"printf 'a\r\nb\rc\377'").stdout == "a\r\nb\rc\ufffd"


@pytest.mark.parametrize(
    ("user", "home"), [(os.getuid(), pwd.getpwuid(os.getuid()).pw_dir), (2**31 - 2, "/")], ids=["known", "unknown"]
)
def test_an_unset_home_is_taken_from_the_user_database(monkeypatch: pytest.MonkeyPatch, user: int, home: str) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: user)
    assert LocalHost().run('set -u; echo "$HOME"').stdout == f"{home}\n"


def test_the_time_limit_of_idle_logins_does_not_end_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example of a long `docker pull` that prints nothing."""
    monkeypatch.setenv("TMOUT", "1")
    assert LocalHost().run("read -r line < <(sleep 1.5; echo late); echo $line").stdout == "late\n"


SETTINGS = {
    "BASHOPTS": "nocasematch",
    "BASH_ENV": "settings",
    "BASH_FUNC_echo%%": "() { builtin echo function; }",
    "CDPATH": "/usr",
    "GREP_OPTIONS": "-n",
    "POSIXLY_CORRECT": "1",
    "SHELLOPTS": "errexit",
}
CHECK = "false; [[ a = A ]]; echo $?; shopt -qo posix; echo $?; pwd; cd bin; env | grep ^GREP"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory, with settings of bash exported and a file of BASH_ENV that changes everything."""
    (tmp_path / "settings").write_text("echo welcome; cd /; set -e\n")
    monkeypatch.chdir(tmp_path)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.mark.parametrize("script", [CHECK, f"bash -p -c {shlex.quote(CHECK)}"])
def test_exported_settings_of_bash_disturb_no_script(settings: Path, script: str) -> None:
    assert LocalHost().run(script).stdout == f"1\n1\n{settings}\n"


def test_exported_settings_of_bash_disturb_no_script_of_a_job_and_functions_reach_it(settings: Path) -> None:
    script = "false; [[ a = A ]] || pwd; echo"
    assert LocalHost().run(f"bash -c {shlex.quote(script)}").stdout == f"{settings}\nfunction\n"


@pytest.mark.usefixtures("settings")
def test_the_shell_of_a_connection_ignores_exported_settings_of_bash() -> None:
    mark, env = "first", {**os.environ, "TMOUT": "1"}
    login = ["sh", "-c", COMMAND.format(mark=mark)]
    with subprocess.Popen(login, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as shell:
        assert shell.stdin
        assert shell.stdout
        shell.stdin.write(resource_text("llmb.hosts.ssh", "shell.sh").encode())
        shell.stdin.flush()
        assert b"first 0\n" in iter(shell.stdout.readline, b"")
        command = f"{CHECK}; echo ${{TMOUT-unset}}; exit 3\n".encode()
        output, _ = shell.communicate(b"second %d 10\n%b" % (len(command), command), timeout=60)
        assert output.decode().split()[:2] == ["1", "1"]
        assert output.endswith(b"unset\nsecond 3\n")


def test_profiles_do_not_run_again_if_the_connection_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".bash_profile").write_text("echo profile >>~/runs\n")
    login = ["sh", "-c", COMMAND.format(mark="first")]
    with subprocess.Popen(login, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin
        assert shell.stdout
        command = b"until [ -e lost ]; do sleep 0.01; done"
        shell.stdin.write(resource_text("llmb.hosts.ssh", "shell.sh").encode())
        shell.stdin.write(b"second %d 60\n%b" % (len(command), command))
        shell.stdin.flush()
        assert b"first 0\n" in iter(shell.stdout.readline, b"")
        shell.stdout.close()
        shell.stdin.close()
        (tmp_path / "lost").touch()
        shell.wait()
    assert (tmp_path / "runs").read_text() == "profile\n"


def test_missing_bash_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TargetError, match="bash is not installed"):
        LocalHost().run("true")


def test_no_other_user_can_write_to_a_new_folder(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        LocalHost().put({f"{tmp_path}/a/b/c": "text"})
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o775, 0o775]


def test_files_are_written_with_their_mode(tmp_path: Path) -> None:
    LocalHost().put({f"{tmp_path}/a/b": "text", f"{tmp_path}/c": "größe"}, mode=0o600)
    assert (tmp_path / "a/b").read_text() == "text"
    assert (tmp_path / "c").read_bytes() == "größe".encode()
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o600


def test_only_new_bytes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "read_limit", lambda _files: 4)
    (tmp_path / "log").write_bytes(b"0123456789")
    (tmp_path / "old").write_bytes(b"01")
    offsets = {f"{tmp_path}/{name}": offset for name, offset in (("log", 3), ("old", 2), ("none", 0))}
    assert LocalHost().read(offsets) == {f"{tmp_path}/log": b"3456"}


def test_a_read_error_is_not_an_absent_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match=f"cannot read {tmp_path}: Is a directory"):
        LocalHost().read({str(tmp_path): 0})
