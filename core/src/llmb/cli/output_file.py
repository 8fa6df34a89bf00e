"""Files that commands write on request: complete or not at all, or standard output."""

from __future__ import annotations

from pathlib import Path

import llmb
from llmb.cli import output

STANDARD_OUTPUT = Path("-")


def write_output(file: Path, text: str) -> None:
    """Write a text to a file, or to standard output if the name is ``-``. Raise LlmbError."""
    if file == STANDARD_OUTPUT:
        output.print_text(text, newline=False)
        return
    try:
        if file.exists() and not file.is_file():  # a device or a pipe, which must not be replaced
            file.write_bytes(text.encode())
        else:
            llmb.write_atomically(file, text.encode())
    except OSError as error:
        raise llmb.LlmbError(f"cannot write {file}: {error.strerror}") from error
