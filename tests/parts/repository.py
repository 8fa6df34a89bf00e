"""The files of the repository."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
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


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the module and all that contains statements. Expressions, most of the tree, are not visited."""
    unread: list[ast.AST] = [tree]
    while unread:
        node = unread.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            unread += getattr(node, part, ())
