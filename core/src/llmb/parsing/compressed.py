"""Logs that were compressed when they were rotated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO

from llmb.parsing.file_names import beginning
from llmb.values.errors import Fault, LogError

KINDS = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""How compressed files begin."""

MODULES = {"gzip": "gzip", "bzip2": "bz2", "xz": "lzma"}
"""Which of the standard library opens them."""

BLOCK = 1 << 20


def compression(begin: bytes) -> str | None:
    """By what a file that begins so is compressed; null where it is not."""
    return next((kind for magic, kind in KINDS.items() if begin.startswith(magic)), None)


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """A temporary file with what a compressed log holds; the log itself where nothing is to be, or can be, unpacked.

    What ended a run is looked for from place to place of its log, back and forth: in a compressed one each would cost
    another pass. Raises LogError where the log is damaged, or there is no room for the file.
    """
    stream = _opened(path)
    if stream is None:
        yield path
        return
    with ExitStack() as stack:
        try:
            plain = Path(stack.enter_context(TemporaryDirectory(prefix="llmb-")), path.name)
            with stream, plain.open("wb") as file:
                file.writelines(_blocks(stream, path))
        except OSError as error:
            message = f"cannot be unpacked into {gettempdir()}: {error.strerror}"
            raise LogError(Fault(message=message, file=str(path))) from error
        yield plain


def beginning_unpacked(path: Path) -> bytes:
    """The first bytes of a log, of a compressed one those of what it holds. Raises LogError where it is damaged."""
    stream = _opened(path)
    if stream is None:
        return beginning(path)
    with stream:
        return next(_blocks(stream, path), b"")


def _opened(path: Path) -> IO[bytes] | None:
    module = MODULES.get(compression(beginning(path)) or "")
    if module is None or not path.is_file():  # a pipe cannot be read twice
        return None
    try:
        opened: IO[bytes] = import_module(module).open(path)
    except ImportError:  # Python can be built without it
        return None
    return opened


def _blocks(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    try:
        while block := stream.read(BLOCK):
            yield block
    except Exception as error:  # each of the modules has errors of its own
        raise LogError(Fault(message=f"cannot be unpacked: {error}", file=str(path))) from error
