"""Check of the commands that llmb's scripts use on a host."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from llmb import CommandResult, TargetError
from llmb.doctor_checks.host_commands import check_commands
from llmb.hosts.local_host import LocalHost


class OddHost:
    """Host whose command gives one answer."""

    def __init__(self, exit_code: int, stdout: str, stderr: str) -> None:
        self.answer = CommandResult(exit_code=exit_code, stdout=stdout, stderr=stderr)

    def run(self, _script: str) -> CommandResult:
        return self.answer


@pytest.mark.parametrize(
    ("remote", "missing", "packages"), [(False, "flock", "util-linux"), (True, "flock, tar", "util-linux, tar")]
)
def test_missing_commands_are_named_with_their_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, remote: bool, missing: str, packages: str
) -> None:
    for name in ("bash", "grep", "sed", "setsid", "gzip", "xargs"):
        (tmp_path / name).symlink_to(cast("str", shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    [check] = check_commands(LocalHost(), "eos", remote=remote)
    assert (check.name, check.ok, check.detail) == ("commands", False, f"not installed: {missing}")
    assert check.remedy == f"install {packages} on eos"


def test_a_host_with_all_commands_needs_no_check() -> None:
    assert list(check_commands(LocalHost(), "eos", remote=True)) == []


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((0, "4 2\n", ""), r"bash 4.2 on eos is too old; install bash 4.4 or later there"),
        ((1, "", "no quota left"), r"cannot run commands on eos \(exit code 1\) no quota left"),
        ((0, "", ""), r"cannot run commands on eos \(exit code 0\)"),
    ],
    ids=["old bash", "failed", "silent"],
)
def test_a_host_that_runs_no_script_is_an_error(answer: tuple[int, str, str], error: str) -> None:
    host: Any = OddHost(*answer)
    with pytest.raises(TargetError, match=error):
        list(check_commands(host, "eos", remote=True))
