"""The files of the repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked_files(*patterns: str) -> list[Path]:
    """List the files that match one of ``patterns`` and that Git does not ignore."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def is_test(path: Path) -> bool:
    """Check whether a file belongs to the tests."""
    return "tests" in path.relative_to(ROOT).parts
