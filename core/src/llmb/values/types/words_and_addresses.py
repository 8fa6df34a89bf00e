"""Types of strings: words of a command, paths, images, hosts and names of variables."""

import re
from typing import Annotated, Any

from llmb.values.types.value_type import accepting, matching

VARIABLE_NAME = r"[A-Za-z_][A-Za-z0-9_]*"

NonEmptyStr = Annotated[
    str,
    accepting(
        "a non-empty string",
        lambda value: isinstance(value, str) and bool(value.strip()),
        schema={"type": "string", "pattern": r"\S"},
    ),
]
"""A string that is not blank."""


def is_path(value: Any) -> bool:
    """Check whether a value is an absolute path without line breaks or other invisible characters."""
    return isinstance(value, str) and value.startswith("/") and value.isprintable()


AbsolutePath = Annotated[str, accepting("an absolute path", is_path, schema={"type": "string", "pattern": "^/"})]
"""An absolute path on the target."""


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and re.fullmatch(r"[^-\s]\S*", value) is not None


_WORD_SCHEMA = {"type": "string", "pattern": r"^[^-\s]\S*$"}

Word = Annotated[str, accepting("a word without blanks that does not begin with -", _is_word, schema=_WORD_SCHEMA)]
"""A word that no command takes for an option."""

Name = Annotated[str, matching("letters, digits and . _ + -", "[A-Za-z0-9][A-Za-z0-9._+-]*")]
"""A name that may be part of a file name."""

Url = Annotated[str, matching("a URL or path that does not begin with -", r"[^-\s][^\n\r]*")]
"""The address of a repository, which may contain blanks. No command takes it for an option."""

_IMAGE = r"[A-Za-z0-9]([:/]?[A-Za-z0-9_.@-])*|(/[A-Za-z0-9_.@+=~-]+)+"


def _is_image(value: Any) -> bool:
    """Check whether a value is the address of an image, and not the relative path of a squashfs file."""
    is_address = isinstance(value, str) and re.fullmatch(_IMAGE, value) is not None
    return is_address and (value.startswith("/") or not value.endswith((".sqsh", ".squashfs")))


ImageAddress = Annotated[
    str,
    accepting(
        'an image such as "registry.example/name:tag", or the absolute path of a squashfs file on the target',
        _is_image,
        schema={"type": "string", "pattern": f"^(?:{_IMAGE})$"},
    ),
]
"""The address of an image in a registry, without a ``#`` after the registry, or the path of an image on the target."""

_HOST = re.compile(
    r"([^-\s@'\"`$;&|<>(){}\\][^\s@'\"`$;&|<>(){}\\]*@)?"
    r"([A-Za-z0-9_][A-Za-z0-9._-]*(:(?P<port>[0-9]{1,5}))?|[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.%a-z]*)"
)
"""A host as ssh takes it, with or without user and port, and without characters that a shell or ssh would interpret."""

_LAST_PORT = 65535
"""TCP has 16 bits for a port (RFC 9293). Port 0 accepts no connections."""

HOST = '"host", "user@host" or "user@host:port" (a port from 1 to 65535), as ssh takes it'
"""The values that `is_host` accepts, for messages."""


def is_host(value: Any) -> bool:
    """Check whether a value is a host as ssh takes it."""
    match = _HOST.fullmatch(value) if isinstance(value, str) and value.isprintable() else None
    return match is not None and 1 <= int(match["port"] or 22) <= _LAST_PORT


HostAddress = Annotated[str, accepting(HOST, is_host, schema={"type": "string", "pattern": r"^[^-\s]\S*$"})]
"""A host as ssh takes it."""

VariableName = Annotated[str, matching("the name of an environment variable", VARIABLE_NAME)]
"""The name of an environment variable."""
