"""Container images in squashfs files, which count as there only when they are whole."""

from __future__ import annotations

import shlex

from llmb.scripts.resources import resource_text


def squashfs_functions() -> str:
    """Functions of bash: ``keep_image PARTIAL FILE`` gives an import its name, ``whole_image FILE`` asks for it.

    Both fail where the file is not a whole squashfs. ``keep_image`` then says so, else it writes ``FILE.sha256``, too.
    """
    return resource_text(__package__, "squashfs.sh")


def squashfs_check(file: str) -> str:
    """The check of a task that makes this file: bash that exits with 0 where ``whole_image`` does."""
    return f"{squashfs_functions()}\nwhole_image {shlex.quote(file)}"
