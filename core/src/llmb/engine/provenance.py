"""What a job says of the machines and the software on which it ran."""

from __future__ import annotations

from collections.abc import Mapping


def parse_provenance(data: bytes) -> Mapping[str, str | list[str] | dict[str, str]]:
    """``key=value`` lines as a table: a key that comes with several values holds all, ``env.NAME`` makes a table.

    What has no value is left out, and so is a last line without an end.
    """
    values: dict[str, dict[str, None]] = {}
    env: dict[str, str] = {}
    for line in data.decode(errors="replace").split("\n")[:-1]:
        key, _, value = line.partition("=")
        name = key.removeprefix("env.")
        if name != key:
            env[name] = value
        elif key and value:
            values.setdefault(key, {})[value] = None
    found: dict[str, str | list[str] | dict[str, str]] = {
        key: next(iter(each)) if len(each) == 1 else list(each) for key, each in values.items()
    }
    return found | ({"env": env} if env else {})
