"""Logins over SSH with a real server: what profiles, the account and the server do before the first command."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llmb import TargetError

pytestmark = pytest.mark.real
KILL_SSHD = "read -r _ _ _ sshd _ </proc/$PPID/stat; kill -KILL $sshd"
"""Line of a profile that kills the parent of the shell that runs ``bash -lc``."""


@pytest.mark.slow
def test_profiles_can_set_variables_but_not_disturb_commands(tmp_path: Path, start_server: Any, connect: Any) -> None:
    profile = "echo welcome; echo oh >&2; read -r line; export SITE='the site' BASH_ENV=~/.bashrc\n"
    (tmp_path / ".bash_profile").write_text(profile)
    (tmp_path / ".bashrc").write_text("echo hello\n")
    start_server(env={"HOME": str(tmp_path)})
    answer = connect().run('echo "$SITE"')
    assert (answer.stdout, answer.stderr) == ("the site\n", "")


def test_a_process_that_a_profile_leaves_does_not_print_among_the_output_of_commands(
    tmp_path: Path, start_server: Any, connect: Any
) -> None:
    """The process prints once a command has started, and the command ends after that."""
    late = f"until [ -e {tmp_path}/started ]; do sleep 0.1; done; echo late; echo late >&2; touch {tmp_path}/printed"
    (tmp_path / ".bash_profile").write_text(f"({late}) &\n")
    start_server(env={"HOME": str(tmp_path)})
    wait = f"touch {tmp_path}/started; until [ -e {tmp_path}/printed ]; do sleep 0.1; done; echo end"
    answer = connect().run(wait)
    assert (answer.stdout, answer.stderr) == ("end\n", "")


def test_a_profile_that_exports_settings_of_bash_disturbs_no_command(
    tmp_path: Path, start_server: Any, connect: Any
) -> None:
    (tmp_path / ".bash_profile").write_text("head() { echo; }; export -f head; set -e; export SHELLOPTS CDPATH=/usr\n")
    start_server(env={"HOME": str(tmp_path)})
    host = connect()
    assert host.run("cd /; false; cd bin; echo $?; false").exit_code == 1
    assert host.run("cd /; false; cd bin; echo $?").stdout == "0\n"


@pytest.mark.parametrize(
    ("methods", "reason"),
    [
        ("password", "the server accepts no keys, only password, which llmb does not support because it never prompts"),
        ("publickey,password", "the server requires password in addition to the key, which .*, or"),
    ],
)
def test_a_login_that_prompts_is_reported_with_a_way_around_it(
    start_server: Any, connect: Any, methods: str, reason: str
) -> None:
    start_server(settings={"AuthenticationMethods": methods, "PasswordAuthentication": "yes"})
    with pytest.raises(TargetError, match=f"{reason}[;,]? run llmb on a login node, without `host`$"):
        connect().run("true")


@pytest.mark.slow
def test_an_account_without_a_shell_is_reported(tmp_path: Path, start_server: Any, connect: Any) -> None:
    start_server(settings={"ForceCommand": "echo This account is not available; exit 1"})
    with pytest.raises(
        TargetError, match=r"cannot start bash on cluster for this user: .*This account is not available"
    ):
        connect().run("true")


@pytest.mark.parametrize(
    ("profile", "reason"),
    [
        ("exec true", "the login shell ended; "),
        ("set -e; echo welcome >&2; echo no quota left >&2; false", r"the login shell ended \(no quota left\); "),
    ],
)
def test_a_profile_that_starts_another_shell_or_exits_is_named_with_a_check(
    tmp_path: Path, start_server: Any, connect: Any, profile: str, reason: str
) -> None:
    (tmp_path / ".bash_profile").write_text(f"{profile}\n")
    server = start_server(env={"HOME": str(tmp_path)})
    with pytest.raises(TargetError, match=f"cannot start bash on cluster for this user: {reason}") as caught:
        connect().run("true")
    check = str(caught.value).split("`")[1]
    assert check == "ssh cluster 'bash -lc date'"
    config = f"-F {server.ssh}/config -o UserKnownHostsFile={server.ssh}/known_hosts"
    command = shlex.split(check.replace("ssh ", f"ssh {config} "))
    assert subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout == b""  # OpenSSH reads no $HOME


@pytest.mark.parametrize(
    ("profile", "settings", "reason"),
    [
        (KILL_SSHD, {}, "the connection was lost"),
        ("", {"MaxSessions": "0"}, r"the server opened no session \(.*\)"),
    ],
)
def test_a_connection_without_a_shell_is_no_error_of_a_profile(
    tmp_path: Path, start_server: Any, connect: Any, profile: str, settings: dict[str, str], reason: str
) -> None:
    (tmp_path / ".bash_profile").write_text(f"{profile}\n")
    start_server(settings=settings, env={"HOME": str(tmp_path)})
    with pytest.raises(TargetError, match=f"^cannot start bash on cluster for this user: {reason}$"):
        connect().run("true")


def test_llmb_logs_in_once_if_the_server_refuses_a_session(start_server: Any, connect: Any) -> None:
    server = start_server(settings={"MaxSessions": "0"})
    with pytest.raises(TargetError, match="the server opened no session"):
        connect().run("true")
    assert server.log.read_text().count("Accepted publickey") == 1


def test_a_connection_that_is_lost_before_bash_runs_is_opened_again(
    tmp_path: Path, start_server: Any, connect: Any
) -> None:
    cut = f"[ -e {tmp_path}/cut ] || {{ touch {tmp_path}/cut; {KILL_SSHD}; }}"
    (tmp_path / ".bash_profile").write_text(f"{cut}\n")
    start_server(env={"HOME": str(tmp_path)})
    assert connect().run("echo here").stdout == "here\n"
    assert (tmp_path / "cut").exists()
