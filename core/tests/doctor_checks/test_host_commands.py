"""Check of the commands that llmb's scripts use on a host."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from llmb import CommandResult
from llmb.doctor_checks.host_commands import check_commands
from llmb.hosts.local_host import LocalHost


class OldHost:
    """Host with bash 4.2."""

    def run(self, _script: str) -> CommandResult:
        return CommandResult(exit_code=0, stdout="4 2\n", stderr="")


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


def test_an_old_bash_is_reported() -> None:
    host: Any = OldHost()
    [check] = check_commands(host, "eos", remote=True)
    assert (check.name, check.detail) == ("bash", "bash 4.2 is too old")
    assert check.remedy == "install bash 4.4 or later on eos"
