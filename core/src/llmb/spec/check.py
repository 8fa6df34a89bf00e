"""One point's tables to typed values, with every fault of every table at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from llmb.spec.structure import describe, structure, unknown_key
from llmb.spec.tables import (
    MeasureTable,
    ModelTable,
    ParallelismTable,
    ProfileTable,
    SpecTables,
    TargetTable,
    WorkloadTable,
)
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap

T = TypeVar("T")

TABLES = ("workload", "parallelism", "model", "framework", "env", "mounts", "profile", "measure", "target")
SECRET_NAME = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|(API|ACCESS|PRIVATE|SECRET)_?KEY)$", re.I)
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_tables(tables: Mapping[str, Any]) -> tuple[SpecTables | None, tuple[Fault, ...]]:
    """The typed tables, or all that is wrong in them."""
    faults = _unknown_tables(tables)

    def take(name: str, cls: type[T]) -> T | None:
        value, wrong = structure(tables.get(name, {}), cls, name)
        faults.extend(wrong)
        return value

    for name in ("workload", "target"):
        if name not in tables:
            faults.append(Fault(message="is missing", key=name, expected=f"a table [{name}]"))
    workload = take("workload", WorkloadTable) if "workload" in tables else None
    parallelism, model = take("parallelism", ParallelismTable), take("model", ModelTable)
    measure = take("measure", MeasureTable)
    profile = take("profile", ProfileTable) if "profile" in tables else None
    env, mounts = _strings(tables, "env", faults), _strings(tables, "mounts", faults)
    faults += [*_env_faults(env), *_mount_faults(mounts)]
    target, options = _target(tables.get("target", {}), faults) if "target" in tables else (None, FrozenMap())
    framework = tables.get("framework", {})
    if not isinstance(framework, dict):
        faults.append(Fault(message="is not a table", key="framework", expected="a table"))
    if faults or workload is None or target is None or parallelism is None or model is None or measure is None:
        return None, tuple(faults)
    spec = SpecTables(
        workload=workload,
        parallelism=parallelism,
        model=model,
        measure=measure,
        profile=profile,
        env=env,
        mounts=mounts,
        target=target,
        framework=framework,
        target_options=options,
    )
    return spec, ()


def _unknown_tables(tables: Mapping[str, Any]) -> list[Fault]:
    known = [*TABLES, "sweep"]
    return [unknown_key(name, name, known) for name in tables if name not in TABLES]


def _strings(tables: Mapping[str, Any], name: str, faults: list[Fault]) -> Mapping[str, str]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        faults.append(Fault(message="is not a table", key=name, expected=describe(Mapping[str, str])))
        return FrozenMap()
    wrong = {key: value for key, value in table.items() if not isinstance(value, str)}
    faults.extend(
        Fault(message=f"is {value!r}", key=f"{name}.{key}", expected="a string") for key, value in wrong.items()
    )
    return FrozenMap((key, value) for key, value in table.items() if key not in wrong)


def _env_faults(env: Mapping[str, str]) -> list[Fault]:
    faults = []
    for name, value in env.items():
        key = f"env.{name}"
        if not VARIABLE_NAME.fullmatch(name):
            faults.append(Fault(message="is not a variable's name", key=key, expected="letters, digits and _"))
        elif SECRET_NAME.search(name):
            faults.append(
                Fault(
                    message="looks like a secret, and a spec is recorded",
                    key=key,
                    expected="it in the environment of llmb, not in the spec",
                )
            )
        if "\0" in value:
            faults.append(Fault(message="holds a NUL character", key=key, expected="text"))
    return faults


def _mount_faults(mounts: Mapping[str, str]) -> list[Fault]:
    faults = []
    for source, target in mounts.items():
        path, _, mode = target.partition(":")
        if not source.startswith("/") or not path.startswith("/") or mode not in ("", "ro", "rw"):
            faults.append(
                Fault(
                    message=f'is "{target}"',
                    key=f'mounts."{source}"',
                    expected='"/path/outside" = "/path/inside" or "/path/inside:ro"',
                )
            )
    return faults


def _target(table: Any, faults: list[Fault]) -> tuple[TargetTable | None, Mapping[str, Any]]:
    """The core's keys of [target], and the rest for the scheduler's own class."""
    if not isinstance(table, dict):
        faults.append(Fault(message="is not a table", key="target", expected="a table"))
        return None, FrozenMap()
    own = {field.name for field in attrs.fields(TargetTable)}
    target, wrong = structure({key: value for key, value in table.items() if key in own}, TargetTable, "target")
    faults.extend(wrong)
    if target is not None and target.workdir is not None and not target.workdir.startswith("/"):
        faults.append(Fault(message=f'is "{target.workdir}"', key="target.workdir", expected="an absolute path"))
    return target, FrozenMap((key, value) for key, value in table.items() if key not in own)


def check_options(
    table: Mapping[str, Any], cls: type[T], key: str, also: tuple[str, ...] = ()
) -> tuple[T | None, tuple[Fault, ...]]:
    """A plugin's own table; ``also`` are the core's keys of the same table, for the nearest name."""
    options, faults = structure(table, cls, key)
    return options, tuple(_nearer(fault, cls, also) for fault in faults)


def _nearer(fault: Fault, cls: type[Any], also: tuple[str, ...]) -> Fault:
    if fault.message != "is not a key here" or fault.key is None or not also:
        return fault
    known = [*(field.name for field in attrs.fields(cls)), *also]
    nearest = difflib.get_close_matches(fault.key.rpartition(".")[2], known, n=1)
    return attrs.evolve(fault, expected=f"one of {', '.join(known)}", nearest=nearest[0] if nearest else None)
