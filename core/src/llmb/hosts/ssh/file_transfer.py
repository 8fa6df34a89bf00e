"""Reading and writing many files of an SSH host in one command each.

The bash functions that these commands call are in file_transfer.sh.
"""

import io
import posixpath
import secrets
import shlex
import time
from collections.abc import Iterator, Mapping

from llmb.files import resource_text
from llmb.values.errors import TargetError


def write_command(files: Mapping[str, str], mode: int) -> tuple[str, bytes]:
    """Return a script that writes text files atomically, with ``mode`` from the first byte on, and its input."""
    token = secrets.token_hex(4)
    return _script("write_files", token, *files), _archive(files, mode, token)


def read_command(offsets: Mapping[str, int], limit: int) -> str:
    """Return a script that prints up to ``limit`` new bytes of each file, for `parse_parts`."""
    words = [word for path, offset in offsets.items() for word in (str(offset), path)]
    return _script("read_files", str(limit), *words)


def parse_parts(output: bytes) -> Iterator[tuple[int, bytes]]:
    """Split the output of `read_command` into file numbers and bytes.

    Raise TargetError if a part is shorter than announced, because its file was truncated while it was read.
    """
    start = 0
    while start < len(output):
        end = output.find(b"\n", start)
        number, size = map(int, output[start:end].split())
        start, end = end + 1, end + 1 + size
        if output[end : end + 1] != b"\n":
            raise TargetError("a file was truncated while it was read")
        yield number, output[start:end]
        start = end + 1


def _script(*call: str) -> str:
    return f"{resource_text('llmb.hosts.ssh', 'file_transfer.sh')}\n{shlex.join(call)}"


def _archive(files: Mapping[str, str], mode: int, token: str) -> bytes:
    """Return a compressed tar archive of the files under their temporary names: job scripts of a sweep are alike."""
    import gzip  # not needed for this machine
    import tarfile

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as archive:
        for name, text in files.items():
            data = text.encode(errors="surrogateescape")
            folder, base = posixpath.split(name)
            member = tarfile.TarInfo(f"{folder}/.{base}.{token}.partial")
            member.size, member.mode, member.mtime = len(data), mode, time.time()
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(stream.getvalue(), compresslevel=1)
