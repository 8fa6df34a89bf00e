"""This machine as a host."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from llmb.hosts import local
from llmb.hosts.local import LocalHost
from llmb.values.errors import TargetError, UnknownOutcomeError


def test_a_command_that_fails_is_an_answer() -> None:
    answer = LocalHost().run("echo out; echo bad >&2; exit 3")
    assert (answer.exit_code, answer.stdout, answer.stderr) == (3, "out\n", "bad\n")


def test_text_is_utf_8_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    assert LocalHost().run("echo 'größe'").stdout == "größe\n"


def test_bash_reads_all_before_it_starts_any() -> None:
    """So that a script which was cut off when llmb was killed does nothing."""
    cut = subprocess.run(["bash", "-s"], input="{\necho started\n", text=True, capture_output=True)
    assert cut.stdout == ""


def test_a_command_is_no_part_of_the_terminals_group() -> None:
    sid, pid = LocalHost().run("echo $(ps -o sid= -p $$) $$").stdout.split()
    assert sid == pid


def test_one_that_does_not_end_in_time_is_ended_with_all_that_it_started_and_may_have_been_done(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    script = f"exec 9>{alive}; flock 9; bash -c 'sleep 1000' & wait"
    with pytest.raises(UnknownOutcomeError, match="did not end within"):
        LocalHost().run(script, timeout_s=0.3)
    assert LocalHost().run(f"flock -w 10 {alive} true").exit_code == 0  # whatever holds it is dying


def test_an_answer_is_what_was_written_to_the_byte() -> None:
    assert LocalHost().run(r"printf 'a\r\nb\rc\377'").stdout == "a\r\nb\rc\ufffd"


@pytest.mark.parametrize(
    ("user", "home"), [(os.getuid(), pwd.getpwuid(os.getuid()).pw_dir), (2**31 - 2, "/")], ids=["known", "unknown"]
)
def test_without_home_as_under_cron_it_is_what_the_system_knows(
    monkeypatch: pytest.MonkeyPatch, user: int, home: str
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: user)
    assert LocalHost().run('set -u; echo "$HOME"').stdout == f"{home}\n"


def test_without_bash_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TargetError, match="has no bash"):
        LocalHost().run("true")


def test_files_are_placed_whole_with_their_mode(tmp_path: Path) -> None:
    LocalHost().put({f"{tmp_path}/a/b": "text", f"{tmp_path}/c": "größe"}, mode=0o600)
    assert (tmp_path / "a/b").read_text() == "text"
    assert (tmp_path / "c").read_bytes() == "größe".encode()
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o600


def test_only_what_is_new_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "read_limit", lambda _files: 4)
    (tmp_path / "log").write_bytes(b"0123456789")
    (tmp_path / "old").write_bytes(b"01")
    offsets = {f"{tmp_path}/{name}": offset for name, offset in (("log", 3), ("old", 2), ("none", 0))}
    assert LocalHost().read(offsets) == {f"{tmp_path}/log": b"3456"}


def test_what_cannot_be_read_is_not_taken_for_absent(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=f"cannot read {tmp_path}: Is a directory"):
        LocalHost().read({str(tmp_path): 0})
