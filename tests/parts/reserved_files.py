"""The files of a run's directory that a declared framework could replace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli_w

import llmb


def replaceable_files(work: Path, folder: Path, spec: str) -> set[str]:
    """Return the names in the directory of a run of this spec that a declared framework may have among its `files`."""
    names = sorted(each.name for each in work.iterdir())
    file = folder / "mine.toml"
    file.write_text(tomli_w.dumps({"command": ["a.py"], "files": names, "log": {"line": "step {step}"}}))
    with pytest.raises(llmb.LlmbError) as raised:
        llmb.parse(file, framework=str(file))
    of_llmb = set(re.findall(r'llmb writes "([^"]*)"', str(raised.value)))
    [of_scheduler] = {plan.script.reserved_files for plan in llmb.plan(llmb.load(spec))}
    return set(names) - of_llmb - set(of_scheduler)
