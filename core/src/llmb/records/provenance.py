"""Provenance: the machines and the software on which a job ran, as the job reports them."""

from __future__ import annotations

from collections.abc import Container, Mapping


def parse_provenance(data: bytes, secrets: Container[str] = ()) -> Mapping[str, str | list[str] | dict[str, str]]:
    """Parse ``key=value`` lines. A key with several values gets a list, and keys such as ``env.NAME`` get a table.

    Leave out keys without a value, a last line without its end, and the variables that are ``secrets``, because the
    environment of a job may contain the secrets of the tasks before it.
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
