"""Files for another host: the script that writes them, and its input."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from llmb.hosts.ssh.file_transfer import parse_parts, read_command, write_command


@pytest.mark.parametrize("folder", ["José", "日本"])
def test_names_are_utf_8_in_every_locale(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tarfile.TarFile, "encoding", "iso8859-1")  # the default in a locale with Latin-1
    file = tmp_path / folder / "job.sh"
    script, data = write_command({str(file): "echo größe\n"}, 0o600)
    subprocess.run(["bash", "-c", script], input=data, check=True)
    assert file.read_text(encoding="utf-8") == "echo größe\n"


@pytest.mark.parametrize(("name", "value"), [("PERL_UNICODE", "SDA"), ("PERL5OPT", "-CSD")])
def test_settings_of_perl_do_not_change_the_bytes_of_a_log(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    log = tmp_path / "größe.log"
    log.write_bytes("step 1 █ größe".encode() + b"\xff\n")
    output = subprocess.run(["bash", "-c", read_command({str(log): 0}, 1000)], capture_output=True, check=True).stdout
    assert list(parse_parts(output)) == [(0, log.read_bytes())]
