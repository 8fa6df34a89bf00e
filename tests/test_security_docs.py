"""docs/security.md: each line about what is not trusted names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_line_about_untrusted_input_has_its_test() -> None:
    table = (ROOT / "docs/security.md").read_text().partition("## Not trusted")[2].partition("\n## ")[0]
    lines = table.strip().splitlines()[2:]
    tests = [re.findall(r"\| `([^`]+\.py)` \|$", line) for line in lines]
    assert len(lines) > 5
    assert all(len(found) == 1 and "def test_" in (ROOT / found[0]).read_text() for found in tests)
