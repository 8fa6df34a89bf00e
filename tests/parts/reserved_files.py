"""The files of a run's directory that a declared framework could replace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli_w

import llmb


def replaceable_files(work: Path, folder: Path) -> set[str]:
    """Return the names in a run's directory that a declared framework may have among its `files`."""
    names = sorted(each.name for each in work.iterdir())
    file = folder / "mine.toml"
    file.write_text(tomli_w.dumps({"command": ["a.py"], "files": names, "log": {"line": "step {step}"}}))
    with pytest.raises(llmb.LlmbError) as raised:
        llmb.parse(file, framework=str(file))
    return set(names) - set(re.findall(r'llmb writes "([^"]*)"', str(raised.value)))
