"""Directories of llmb on this machine."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from llmb.paths import home_folder, targets_file


def test_a_user_without_a_home_directory_has_the_directories_in_the_root_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find_no_user(_uid: int) -> None:
        raise KeyError

    for name in ("HOME", "LLMB_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", find_no_user)
    assert home_folder() == Path("/.local/share/llmb")
    assert targets_file() == Path("/.config/llmb/targets.toml")
