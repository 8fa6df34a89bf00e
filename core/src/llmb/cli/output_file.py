"""Files that commands write on request: complete or not at all, or standard output."""

from __future__ import annotations

from pathlib import Path

import llmb
from llmb.cli import output

STANDARD_OUTPUT = Path("-")


def write_output(file: Path, content: str | bytes) -> None:
    """Write text or bytes to a file, or text to standard output if the name is ``-``. Raise LlmbError."""
    if file == STANDARD_OUTPUT and isinstance(content, str):
        output.print_text(content, newline=False)
        return
    data = content.encode() if isinstance(content, str) else content
    try:
        if file.exists() and not file.is_file():  # a device or a pipe, which must not be replaced
            file.write_bytes(data)
        else:
            llmb.write_atomically(file, data)
    except OSError as error:
        raise llmb.LlmbError(f"cannot write {file}: {error.strerror}") from error
