"""What a job says of the machines and the software on which it ran."""

from __future__ import annotations

from collections.abc import Container, Mapping


def parse_provenance(data: bytes, secrets: Container[str] = ()) -> Mapping[str, str | list[str] | dict[str, str]]:
    """``key=value`` lines as a table: a key that comes with several values holds all, ``env.NAME`` makes a table.

    What has no value is left out, and so are a last line without an end, and variables that are ``secrets``: a job
    knows its own, and may find in its environment those of the tasks before it.
    """
    values: dict[str, dict[str, None]] = {}
    env: dict[str, str] = {}
    for line in data.decode(errors="replace").split("\n")[:-1]:
        key, _, value = line.partition("=")
        name = key.removeprefix("env.")
        if name != key:
            env |= {} if name in secrets else {name: value}
        elif key and value:
            values.setdefault(key, {})[value] = None
    found: dict[str, str | list[str] | dict[str, str]] = {
        key: next(iter(each)) if len(each) == 1 else list(each) for key, each in values.items()
    }
    return found | ({"env": env} if env else {})
