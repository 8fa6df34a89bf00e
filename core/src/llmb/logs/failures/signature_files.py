"""Signatures as TOML files: those of core and plugins, and the keys of a pack's file."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

import attrs

from llmb.logs.failures.commands_in_remedies import SEE_TRACEBACK, fill_commands, with_commands
from llmb.values.errors import Fault
from llmb.values.failure import Failure, Signature
from llmb.values.texts.error_text import format_value
from llmb.values.texts.nearest_name import nearest_name
from llmb.values.types.check_types import decode
from llmb.values.types.words_and_addresses import NonEmptyStr

OF_EXCEPTION: Final = "a process failed with "
"""The beginning of a cause that is only the name of an exception."""


@attrs.frozen(kw_only=True)
class SignaturesFile:
    """The file signatures.toml of a pack."""

    signatures: tuple[Mapping[str, Any], ...] = ()


@attrs.frozen(kw_only=True)
class Needles:
    """The texts of an entry with several, each with its source."""

    needles: Mapping[NonEmptyStr, str] = attrs.field(factory=dict)


def decode_signatures(tables: Mapping[str, Any]) -> tuple[tuple[Signature, ...], tuple[Fault, ...]]:
    """Return the signatures of a pack's file, or all errors of the file. Remedies are those of `read_signatures`."""
    file, errors = decode(tables, SignaturesFile, "")
    found: list[tuple[str, Signature]] = []
    faults = [*errors]
    for index, entry in enumerate(file.signatures if file else ()):
        key = f"signatures[{index}]"
        needles, errors = decode({"needles": entry["needles"]} if "needles" in entry else {}, Needles, key)
        faults += errors
        if {"needle", "needles"} <= entry.keys():
            faults.append(Fault(key=key, message="both needle and needles are set; remove one of them"))
        for table in _one_needle_each(entry, needles.needles) if needles else ():
            signature, errors = decode(table, Signature, key)
            faults += errors
            if signature:
                found.append((key, _with_commands(signature)))
    signatures = tuple(signature for _, signature in found)
    causes = {each.cause for each in (*known_signatures(), *signatures)}
    for key, signature in found:
        faults += (_unknown_cause(name, key, causes) for name in signature.yields_to if name not in causes)
    return signatures, tuple(dict.fromkeys(faults))


def _unknown_cause(name: str, key: str, causes: Collection[str]) -> Fault:
    return Fault(
        message=f"unknown cause {format_value(name)}",
        key=f"{key}.yields_to",
        expected="the cause of a signature of llmb or of this file",
        nearest=nearest_name(name, sorted(causes)),
    )


def _one_needle_each(entry: Mapping[str, Any], needles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return an entry once for each text of its table ``needles``, or as it is without such a table."""
    table = {name: value for name, value in entry.items() if name != "needles"}
    return [{"needle": needle, "source": source, **table} for needle, source in needles.items()] or [table]


@functools.cache
def known_signatures() -> tuple[Signature, ...]:
    """Return the signatures that core ships."""
    tables = sorted(files("llmb.logs.failures").joinpath("signatures").iterdir(), key=lambda file: file.name)
    return _checked([each for file in tables for each in _signatures_in(file)])


def preparation_failure(log: str) -> Signature | None:
    """Return the first known cause for which a task fails, such as no route to a server, or None.

    If the log names the version of Python that is missing, the remedy names that version.
    """
    signatures = _signatures_in(files("llmb.logs.failures").joinpath("preparation.toml"))
    found = next((each for each in signatures if each.needle in log), None)
    version = re.search(found.pattern, log) if found and found.pattern else None
    if found and version:
        return attrs.evolve(found, remedy=found.remedy.replace("VERSION", version["detail"]))
    return found


@functools.cache  # a command that tries several frameworks calls each scheduler's hook for each of them
def read_signatures(package: str, name: str) -> tuple[Signature, ...]:
    """Return the ``[[signatures]]`` of a TOML file in the folder of an installed package.

    Instead of ``needle`` and ``source``, an entry may have a table ``needles``: the source of each of several texts. A
    command that prints the earliest errors in all logs replaces ``{first_errors}`` in a remedy. One that prints the
    last messages of all ranks replaces ``{last_messages}``. Raise ValueError if ``yields_to`` of an entry has a cause
    that neither llmb's signatures nor those of the file have.
    """
    return _checked([*_signatures_in(files(package).joinpath(name))], known_signatures())


def signature_of_exception(name: str) -> Signature:
    """Return the cause for an exception of this name that no signature identifies."""
    table = tomllib.loads(files("llmb.logs.failures").joinpath("exception_remedies.toml").read_text(encoding="utf-8"))
    return Signature(needle=name, cause=f"{OF_EXCEPTION}{name}", **{"remedy": SEE_TRACEBACK, **table.get(name, {})})


def known_failure(message: str, more: Iterable[Signature]) -> Failure | None:
    """Return the cause and the remedy of the first primary signature in ``message``, or None if it contains none.

    Commands have the names of the message, such as that of a host.
    """
    signatures = (each for each in (*known_signatures(), *more) if each.primary and _occurs(each, message))
    if (signature := next(signatures, None)) is None:
        return None
    match = re.search(signature.pattern, message) if signature.pattern else None
    detail = match.groupdict().get("detail") if match else None
    cause = signature.cause_with(detail) if detail else signature.cause_in(message[message.index(signature.needle) :])
    return fill_commands(Failure(cause=cause, remedy=signature.remedy, origin=signature.origin or None), {})


def _occurs(signature: Signature, message: str) -> bool:
    """Check whether a message contains the text of a signature, and matches its pattern if it has one."""
    return signature.needle in message and re.search(signature.pattern, message) is not None


def _signatures_in(file: Traversable) -> Iterator[Signature]:
    for entry in tomllib.loads(file.read_text(encoding="utf-8"))["signatures"]:
        for table in _one_needle_each(entry, entry.get("needles", {})):
            yield _with_commands(Signature(**table))


def _checked(signatures: Sequence[Signature], more: Sequence[Signature] = ()) -> tuple[Signature, ...]:
    """Return the signatures. Raise ValueError if one yields to a cause that neither they nor ``more`` have."""
    causes = {each.cause for each in (*signatures, *more)}
    for each in signatures:
        if unknown := [name for name in each.yields_to if name not in causes]:
            raise ValueError(f"invalid Signature.yields_to {unknown[0]!r}; expected the cause of another signature")
    return tuple(signatures)


def _with_commands(signature: Signature) -> Signature:
    return attrs.evolve(signature, remedy=with_commands(signature.remedy))
