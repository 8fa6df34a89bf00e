"""The bash function that opens a lock in a directory that others can write."""

from __future__ import annotations

import subprocess
from pathlib import Path

from llmb import lock_function


def test_a_link_that_appears_while_the_lock_is_opened_is_not_followed(tmp_path: Path) -> None:
    """The link appears after the first check: `umask` is called between the check and the opening."""
    (tmp_path / "victim").touch()
    plant = 'umask() { ln -s victim lock; builtin umask "$@"; }'
    script = f'{lock_function()}\n{plant}\nopen_lock lock || {{ echo "$lock_error"; exit 3; }}'
    done = subprocess.run(["bash", "-uc", script], cwd=tmp_path, capture_output=True, text=True)
    assert (tmp_path / "lock").is_symlink()
    assert (done.returncode, done.stdout) == (3, "the lock lock is no regular file, but a link; remove it\n")
