"""docs/security.md: each line about what is trusted and what is not names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEST = re.compile(r"\| `([^`|]+\.py)::(test_\w+)` \|$")


@pytest.mark.parametrize(("section", "least"), [("Trusted", 4), ("Not trusted", 12)])
def test_each_line_names_a_test_that_exists(section: str, least: int) -> None:
    table = (ROOT / "docs/security.md").read_text().partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = table.strip().splitlines()[2:]
    assert len(lines) >= least
    missing = [line for line in lines if not (found := TEST.search(line)) or not _exists(*found.groups())]
    assert missing == []


def _exists(file: str, name: str) -> bool:
    path = ROOT / file
    return path.is_file() and re.search(rf"^def {name}\(", path.read_text(), re.MULTILINE) is not None
