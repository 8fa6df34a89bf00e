"""Signatures as TOML files: those of core and plugins, and the keys of a pack's file."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

import attrs

from llmb.values.errors import Fault
from llmb.values.failure import Signature
from llmb.values.typed import decode

SEE_TRACEBACK: Final = (
    "read the first traceback of each file, from which the others follow: `grep -rn -m 1 -A 40 'Traceback (most' LOGS`"
)


@attrs.frozen(kw_only=True)
class SignaturesFile:
    """The file signatures.toml of a pack."""

    signatures: tuple[Signature, ...] = ()


def decode_signatures(tables: Mapping[str, Any]) -> tuple[tuple[Signature, ...], tuple[Fault, ...]]:
    """Return the signatures of a pack's file, or all errors of the file."""
    value, errors = decode(tables, SignaturesFile, "")
    return (value.signatures if value else ()), tuple(errors)


@functools.cache
def known_signatures() -> tuple[Signature, ...]:
    """Return the signatures that core ships."""
    tables = sorted(files("llmb.logs").joinpath("signatures").iterdir(), key=lambda file: file.name)
    return tuple(each for file in tables for each in _signatures_in(file))


def preparation_failure(log: str) -> Signature | None:
    """Return the first known cause for which a task fails, such as no route to a server, or None."""
    signatures = _signatures_in(files("llmb.logs").joinpath("preparation.toml"))
    return next((each for each in signatures if each.needle in log), None)


def read_signatures(package: str, name: str) -> tuple[Signature, ...]:
    """Return the ``[[signatures]]`` of a TOML file in the folder of an installed package."""
    return tuple(_signatures_in(files(package).joinpath(name)))


def signature_of_exception(name: str) -> Signature:
    """Return the cause for an exception of this name that no signature identifies."""
    table = tomllib.loads(files("llmb.logs").joinpath("exceptions.toml").read_text(encoding="utf-8"))
    return Signature(
        needle=name, cause=f"a process failed with {name}", **{"remedy": SEE_TRACEBACK, **table.get(name, {})}
    )


def known_remedy(message: str, more: Iterable[Signature] = ()) -> str:
    """Return the remedy of the first primary signature in ``message``, or "" if it contains none."""
    signatures = (each for each in (*known_signatures(), *more) if each.primary and each.needle in message)
    return next((each.remedy for each in signatures), "")


def _signatures_in(file: Traversable) -> Iterator[Signature]:
    return (Signature(**entry) for entry in tomllib.loads(file.read_text(encoding="utf-8"))["signatures"])
