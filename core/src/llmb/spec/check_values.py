"""Checks of single values beyond their types: environment variables, mounts, secrets, hosts and directories."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from llmb.spec.workload_tables import TargetTable
from llmb.values.errors import Fault
from llmb.values.secret_names import SECRET_NAME, SECRET_VARIABLE, SET_BY_SCHEDULERS
from llmb.values.texts.error_text import REQUIRED_KEY, hide_passwords, invalid_value
from llmb.values.types.words_and_addresses import HOST, VARIABLE_NAME, is_host, is_path

NO_SECRETS = "secrets are not allowed in a spec, because llmb records it"
URL_WITH_CREDENTIALS = "a URL with a password is a secret, and llmb records the spec"


def check_env(env: Mapping[str, str], table: str = "env") -> Iterator[Fault]:
    """Yield an error for each variable that no shell can set, that holds a secret, or that llmb sets itself."""
    for name, value in env.items():
        key = f"{table}.{name}"
        if not re.fullmatch(VARIABLE_NAME, name):
            yield Fault(message="invalid variable name", key=key, expected="letters, digits and _")
        elif SECRET_VARIABLE.search(name):
            yield Fault(message=f"{NO_SECRETS}; export {name} before running llmb", key=key)
        elif hide_passwords(value) != value:
            message = f"{URL_WITH_CREDENTIALS}; export {name} before running llmb, and add it to target.secrets"
            yield Fault(message=message, key=key)
        elif SET_BY_SCHEDULERS.fullmatch(name):
            yield Fault(message="llmb sets this variable for each task; remove it", key=key)
        if "\0" in value:
            yield Fault(message="the value contains a NUL character", key=key, expected="text")


def check_secrets(table: Any, key: str) -> Iterator[Fault]:
    """Yield an error for each string that is a secret, as its key or a password in a URL shows.

    The string would reach records and command lines. `check_env` checks tables of environment variables.
    """
    if isinstance(table, str) and hide_passwords(table) != table:
        yield Fault(message=URL_WITH_CREDENTIALS, key=key, expected="a URL without a password")
    for index, value in enumerate(table) if isinstance(table, list) else ():
        if not isinstance(value, (int, float)):  # a sweep has long lists of numbers
            yield from check_secrets(value, f"{key}[{index}]")
    for name, value in table.items() if isinstance(table, Mapping) and key not in ("env", "target.env") else ():
        if isinstance(value, str) and SECRET_NAME.search(name):
            message = f"{NO_SECRETS}; export it as an environment variable before running llmb"
            yield Fault(message=message, key=f"{key}.{name}")
        else:
            yield from check_secrets(value, f"{key}.{name}")


def check_mounts(mounts: Mapping[str, str], table: str = "mounts") -> Iterator[Fault]:
    """Yield an error for each mount without absolute paths, and for two mounts at one path."""
    expected = '"/path/outside" = "/path/inside" or "/path/inside:ro"'
    sources: dict[str, str] = {}  # by path inside
    for source, target in mounts.items():
        path, _, mode = target.partition(":")
        key = mount_key(source, table)
        if not (source + target).isprintable():
            yield Fault(message="a path contains a control character", key=key, expected=expected)
        elif not source.startswith("/"):
            yield Fault(message="not an absolute path", key=key, expected=expected)
        elif not path.startswith("/") or mode not in ("", "ro", "rw"):
            yield Fault(message=invalid_value(target), key=key, expected=expected)
        elif (first := sources.setdefault(posixpath.normpath(path), source)) != source:
            message = f'"{first}" is already mounted at {path}'
            yield Fault(message=message, key=key, expected="another path inside")


def mount_key(source: str, table: str = "mounts") -> str:
    """Return the key of a mount."""
    return f'{table}."{source}"'


def check_host_and_workdir(target: TargetTable) -> Iterator[Fault]:
    """Yield the errors of the host and the work directory."""
    host, workdir = target.host, target.workdir
    if host is not None and not is_host(host):
        yield Fault(message=invalid_value(host), key="target.host", expected=HOST)
        host = None
    if host and not workdir:
        expected = f"a directory on {host} that all nodes share"
        yield Fault(message=REQUIRED_KEY, key="target.workdir", expected=expected)
    if workdir is not None and not is_path(workdir):
        on_host = f" on {host} (`ssh {host} pwd` prints the home directory)" if host else ""
        expected = f"an absolute path{on_host}"
        if workdir.startswith("/"):
            expected = "a path without line breaks or other invisible characters"
        yield Fault(message=invalid_value(workdir), key="target.workdir", expected=expected)
