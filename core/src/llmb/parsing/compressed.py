"""Logs that cannot be searched in place: compressed ones, pipes, and those that are not lines of text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO

from llmb.parsing.file_filter import SAMPLE_BYTES, beginning, is_binary, sample
from llmb.parsing.json_records_and_utf16 import converted, needs_conversion
from llmb.values.errors import Fault, LogError

KINDS = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"PK\3\4": "zip"}
"""The first bytes of compressed files."""

MODULES = {"gzip": "gzip", "bzip2": "bz2", "xz": "lzma"}
"""The modules of the standard library that open them."""

BLOCK_BYTES = 1 << 20

SAMPLED = 64
"""Blocks after the first one that are unpacked for a sample."""


def _compression(begin: bytes) -> str | None:
    """Return the compression of a file with this beginning, or None if it is not compressed."""
    return next((kind for magic, kind in KINDS.items() if begin.startswith(magic)), None)


def is_tar(begin: bytes) -> bool:
    """Check whether a file with this beginning is a tar archive. Its logs would be read as one log of several runs."""
    return begin[257:262] == b"ustar" and b"\0" in begin[:257]


def explain_unreadable(part: bytes) -> str | None:
    """Return the reason why no framework can read a log with this beginning, or None if the log may be text."""
    if not part:
        return "is empty"
    if kind := _compression(part):
        return f"is compressed by {kind}; unpack it first"
    if is_tar(part):
        return "is a tar archive; unpack it first"
    return None


def unpacked_name(path: Path) -> str:
    """Return the name of a log without the suffix of its compression, if Python can unpack it."""
    return path.stem if _compression(beginning(path)) in MODULES else path.name


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Copy a log into a temporary file as plain text, and yield its path. Yield ``path`` if the log is plain text.

    Pipes, compressed logs, UTF-16 and JSON records are copied. The cause of a failure is searched forwards and
    backwards, which takes a pass for each step in a compressed file, and is impossible in a pipe. Raise LogError if the
    log is damaged or unreadable, or the disk is full.
    """
    stream = _open_pipe(path) or _opened(path)
    if stream is None:
        yield path
        return
    with ExitStack() as stack:
        try:
            plain = Path(stack.enter_context(TemporaryDirectory(prefix="llmb-")), path.name)
            with stream, plain.open("wb") as file:
                file.writelines(converted(_blocks(stream, path)))
        except OSError as error:
            message = f"cannot be written into {gettempdir()}: {error.strerror}"
            raise LogError(Fault(message=message, file=str(path))) from error
        yield plain


def sample_unpacked(path: Path) -> bytes:
    """Return a sample of a log, unpacked if it is compressed. Raise LogError if the log is damaged.

    If the first block of a compressed log is binary, the sample contains the beginning of each of the first blocks.
    """
    stream = _opened(path)
    if stream is None:
        return sample(path)
    with stream:
        blocks = converted(_blocks(stream, path))
        begin = next(blocks, b"")
        if not is_binary(begin):
            return begin
        return b"".join(block[:SAMPLE_BYTES] for block in (begin, *islice(blocks, SAMPLED)))


def _open_pipe(path: Path) -> IO[bytes] | None:
    """Return the opened log if it can be read only once."""
    if os.path.isfile(path) or not os.path.exists(path):
        return None
    try:
        stream = path.open("rb")
    except OSError as error:
        raise LogError(Fault(message=f"cannot be read: {error.strerror}", file=str(path))) from error
    if not (path.is_fifo() or path.is_socket() or stream.isatty()):  # such as /dev/zero, which has no end
        stream.close()
        raise LogError(Fault(message="is a device, not a log", file=str(path), expected="a file or a pipe"))
    return stream


def _opened(path: Path) -> IO[bytes] | None:
    """Return the opened log if it is compressed or must be converted, else None."""
    begin = beginning(path)
    module = MODULES.get(_compression(begin) or "")
    if module is None:
        return path.open("rb") if needs_conversion(begin) else None
    try:
        opened: IO[bytes] = import_module(module).open(path)
    except ImportError:  # Python was built without this module
        return None
    return opened


def _blocks(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    try:
        while block := stream.read(BLOCK_BYTES):
            yield block
    except Exception as error:  # each module has its own errors
        raise LogError(Fault(message=f"cannot be unpacked: {error}", file=str(path))) from error
