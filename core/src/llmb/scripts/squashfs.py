"""Checks of container images in squashfs files."""

import shlex

from llmb.files import resource_text
from llmb.scripts.job_functions import lock_function
from llmb.values.frozen import content_key
from llmb.values.job import Task


def squashfs_functions() -> str:
    """Return bash functions for a task that imports a container image.

    ``lock_image FILE`` waits for other imports of the image, removes what imports that died left, and sets ``partial``
    to a file for the import. ``keep_image PARTIAL FILE`` renames PARTIAL to FILE and writes its checksum to
    ``FILE.sha256``; it fails with a message if PARTIAL is not a complete squashfs. ``is_complete_image FILE`` fails
    unless FILE was kept so and is complete.
    """
    return f"{lock_function()}\n\n{resource_text(__package__, 'squashfs.sh')}"


def squashfs_check(file: str) -> str:
    """Return bash for ``Task.check`` that exits with 0 if ``file`` is a complete image (``is_complete_image``)."""
    return f"{squashfs_functions()}\nis_complete_image {shlex.quote(file)}"


def image_file_task(file: str) -> Task:
    """Return a task without work: the user's own image, which must be a complete squashfs file on the target."""
    functions = resource_text(__package__, "squashfs.sh")
    check = f'{functions}\nreadable_squashfs "$(readlink -f -- {shlex.quote(file)})"'  # the user's path may be a link
    return Task(key=f"image-file-{content_key(file)}", kind=f"image file {file}", work="", check=check)
