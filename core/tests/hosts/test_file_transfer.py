"""Files for another host: the script that writes them, and its input."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from llmb.hosts.ssh.file_transfer import write_command


@pytest.mark.parametrize("folder", ["José", "日本"])
def test_names_are_utf_8_in_every_locale(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tarfile.TarFile, "encoding", "iso8859-1")  # the default in a locale with Latin-1
    file = tmp_path / folder / "job.sh"
    script, data = write_command({str(file): "echo größe\n"}, 0o600)
    subprocess.run(["bash", "-c", script], input=data, check=True)
    assert file.read_text(encoding="utf-8") == "echo größe\n"
