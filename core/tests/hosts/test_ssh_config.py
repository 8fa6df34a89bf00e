"""Sections, names of files and times in ~/.ssh/config."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmb import TargetError
from llmb.hosts.ssh.read_config_files import read_ssh_config, seconds


@pytest.mark.parametrize(
    ("time", "total"), [("30", 30), ("90s", 90), ("1m", 60), ("1M30", 90), ("2h5m", 7500), ("1d", 86_400), ("none", 0)]
)
def test_times_are_parsed_as_in_openssh(time: str, total: int) -> None:
    assert seconds(time) == total


@pytest.mark.parametrize("time", ["", "soon", "1.5", "m", "-1", "1 m", "1y"])
def test_an_invalid_time_is_an_error(time: str) -> None:
    with pytest.raises(ValueError, match=r"invalid time .*; expected a time such as 30 or 1m"):
        seconds(time)


@pytest.fixture
def lookup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Return a function that writes ~/.ssh/config and other files there, and looks up the host eos."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()

    def look_up(config: str, **files: str) -> dict[str, Any]:
        for name, text in {"config": config, **files}.items():
            (tmp_path / ".ssh" / name).write_text(text)
        return dict(read_ssh_config().lookup("eos"))

    return look_up


@pytest.mark.parametrize(
    ("config", "port"),
    [
        ("Host eos # the login node\n  HostName 1.2.3.4\n  Port 7 # not 22", "7"),
        ('Host "eos" # a "comment"\n  User a#b\n  Port 7', "7"),
        ("Match Host eos\n  Port 7", "7"),
        ("Match OriginalHost other\n  Port 6\nHost eos\n  Port 7", "7"),
        ("Match host=eos\n  Port 7", "7"),
        ("Match !host other\n  Port 7", "7"),
        ("Match tagged work\n  Port 6\nHost eos\n  Port 7", "7"),
        ("Host eos\n  Tag work\nMatch tagged w*\n  Port 7", "7"),
        ("CanonicalizeHostname yes\nHost eos\n  Port 7", "7"),
    ],
)
def test_sections_match_as_in_openssh(config: str, port: str, lookup: Callable[..., dict[str, Any]]) -> None:
    assert lookup(config)["port"] == port


@pytest.mark.parametrize(("name", "result"), [("login1", "login1"), ("%h.site", "eos.site"), ("10.0.0.1", "10.0.0.1")])
def test_a_name_that_cannot_be_made_canonical_is_host_name(
    name: str, result: str, lookup: Callable[..., dict[str, Any]]
) -> None:
    assert lookup(f"CanonicalizeHostname yes\nHost eos\n  HostName {name}\n  Port 7")["hostname"] == result


@pytest.mark.parametrize("section", ["Host other", "Match originalhost other"])
@pytest.mark.parametrize("included", ["Port 6", "Host *\n  Port 6", "Match all\n  Port 6", "Include none\nPort 6"])
def test_an_include_in_a_section_of_another_host_has_no_effect(
    section: str, included: str, lookup: Callable[..., dict[str, Any]]
) -> None:
    config = "{}\n  Include included\n  Port 5\nHost eos\n  Port 7"
    assert lookup(config.format(section), included=included)["port"] == "7"
    assert lookup(config.format(section.replace("other", "e?s")), included=included)["port"] == "6"


def test_an_include_in_match_all_keeps_the_sections_of_its_files(lookup: Callable[..., dict[str, Any]]) -> None:
    found = lookup("Match all\n  Include included", included="Host other\n  Port 6\nHost eos\n  Port 7")
    assert found["port"] == "7"


def test_a_section_ends_with_its_file(lookup: Callable[..., dict[str, Any]]) -> None:
    assert lookup("Include first second", first="Host other\n  User me", second="Port 7")["port"] == "7"


def test_an_unsupported_criterion_of_match_is_an_error(lookup: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(TargetError, match=r"config: invalid SSH configuration: llmb does not support Match localnetw"):
        lookup("Match localnetwork 10.0.0.0/8\n  Port 6")


def test_names_of_files_have_tokens_and_variables(lookup: Callable[..., dict[str, Any]]) -> None:
    names = "UserKnownHostsFile ${HOME}/%k %n\nIdentityFile ${HOME}/%n-%r\nIdentityAgent /run/%i/agent"
    found = lookup(f"HostKeyAlias login\nUser alice\n{names}")
    assert found["userknownhostsfile"] == f"{os.environ['HOME']}/login eos"
    assert found["identityfile"] == [f"{os.environ['HOME']}/eos-alice"]
    assert found["identityagent"] == f"/run/{os.getuid()}/agent"
