"""Reading files of many runs with one command, although one of the files may be unreadable."""

from collections.abc import Container, Mapping

from llmb.values.errors import UnreadableFileError
from llmb.values.host import Host


def read_files(
    host: Host, files: Mapping[str, Mapping[str, int]], *, alone: Container[str] = ()
) -> tuple[dict[str, bytes], dict[str, UnreadableFileError]]:
    """Return the bytes of files by path, and the errors of files that cannot be read. Raise TargetError.

    ``files`` are groups of paths with offsets, and the errors have the names of the groups. All groups are read with
    one command, which fails if one file cannot be read. Then each group is read alone. Groups in ``alone`` are
    always read alone.
    """
    found: dict[str, bytes] = {}
    errors: dict[str, UnreadableFileError] = {}
    left = [name for name in files if name in alone and files[name]]
    together = {path: offset for name in files if name not in alone for path, offset in files[name].items()}
    try:
        found |= host.read(together) if together else {}
    except UnreadableFileError:
        left = [name for name in files if files[name]]
    for name in left:
        try:
            found |= host.read(files[name])
        except UnreadableFileError as error:
            errors[name] = error
    return found, errors
