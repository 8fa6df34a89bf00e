"""Files of users in TOML: each kind has the same messages, and its file is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmb.drive.notify import read_notify_command
from llmb.plugins.registry import PluginRegistry
from llmb.spec.target_names import target_names
from llmb.values.errors import LlmbError, SpecError
from llmb.values.toml_files import read_toml

SPEC = "spec.toml"
READERS = {
    SPEC: lambda file: read_toml(file),
    "config.toml": lambda _: read_notify_command(),
    "recipes/maxtext/mine.toml": lambda _: PluginRegistry().recipe("maxtext/mine"),
    "frameworks/mylm.toml": lambda _: PluginRegistry().framework("mylm"),
}
"""Each kind of file in the folder of the user's configuration, and what reads it."""

INVALID = [
    (b"a = ", "invalid TOML: Invalid value (at end of document)"),
    (b"a = " + b"[" * 5000, "invalid TOML: nested too deeply"),
    (b"a = " + b"1" * 5000, "invalid TOML: a number has thousands of digits"),
    (b"a = '\xff'", "invalid UTF-8 at byte 5; expected a TOML file in UTF-8"),
]


@pytest.fixture
def config() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "llmb"


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(("data", "message"), INVALID)
def test_an_invalid_file_has_the_same_error_wherever_it_is(config: Path, name: str, data: bytes, message: str) -> None:
    file = config / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    with pytest.raises(LlmbError) as raised:
        READERS[name](file)
    assert f"{file}: {message}" in str(raised.value)


def test_a_file_without_an_end_is_not_read_to_its_end() -> None:
    with pytest.raises(SpecError, match="/dev/zero: has more than 16 MiB; expected a TOML file"):
        read_toml(Path("/dev/zero"))


@pytest.mark.parametrize("name", READERS)
def test_a_directory_is_an_error_with_its_path(config: Path, name: str) -> None:
    (config / name).mkdir(parents=True)
    with pytest.raises(LlmbError) as raised:
        READERS[name](config / name)
    assert f"{config / name}: the path is a directory; expected a TOML file" in str(raised.value)


def test_a_file_that_need_not_exist_is_an_error_if_its_link_or_its_folder_is_broken(config: Path) -> None:
    assert read_notify_command() == []
    config.parent.mkdir(parents=True)
    config.touch()
    with pytest.raises(LlmbError, match=f"{config}/config.toml: cannot read the file: Not a directory"):
        read_notify_command()
    config.unlink()
    config.mkdir()
    (config / "config.toml").symlink_to("nowhere.toml")
    with pytest.raises(LlmbError, match=f"{config}/config.toml: a symbolic link to nowhere.toml, which does not exist"):
        read_notify_command()


def test_a_file_may_begin_with_a_byte_order_mark(config: Path) -> None:
    config.mkdir(parents=True)
    (config / "targets.toml").write_bytes(b"\xef\xbb\xbf[eos]\n")
    (config / "config.toml").write_bytes(b'\xef\xbb\xbfnotify.command = ["true"]\n')
    assert target_names() == ["eos"]
    assert read_notify_command() == ["true"]
