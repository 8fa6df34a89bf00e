"""One combination's tables to typed values, with every fault of every table at once."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import attrs

from llmb.spec.doubt import keys_of, without
from llmb.spec.names import TABLES, nearest_key
from llmb.spec.structure import describe, structure
from llmb.spec.tables import (
    MeasureTable,
    ModelTable,
    ParallelismTable,
    SpecTables,
    TargetTable,
    WorkloadTable,
)
from llmb.values.error_text import MISSING, NOT_A_KEY, shown, unknown_key
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap
from llmb.values.run import Profile

T = TypeVar("T")

NOT_FOR_RECORDS = "looks like a secret, and a spec is recorded"

SECRET_NAME = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|(API|ACCESS|PRIVATE|SECRET)_?KEY)$", re.I)
"""Keys of any table that hold a secret. Not ``key`` alone: a plugin may have a key of that name."""

SECRET_VARIABLE = re.compile(SECRET_NAME.pattern + r"|(^|_)(KEY|PAT)$", re.I)
"""Variables of an environment: there, every ``KEY`` is one, and every ``PAT`` (a personal access token)."""

OURS = re.compile(r"LLMB_.*|(LOCAL_|NODE_)?RANK|(LOCAL_)?WORLD_SIZE|MASTER_(ADDR|PORT)")
"""What every scheduler sets for each task."""

IMAGE = re.compile(r"[^\s\0]+")
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
HOST = re.compile(
    r"([^\s@'\"`$;&|<>(){}\\]+@)?"
    r"([A-Za-z0-9_][A-Za-z0-9._-]*(:(?P<port>[0-9]{1,5}))?|[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.%a-z]*)"
)
"""As ssh takes it, with a user and a port or without; nothing that a shell, or ssh's options, could make more of."""

LAST_PORT = 65535
"""TCP has 16 bits for a port (RFC 9293); 0 is none to connect to."""

STAND_INS: Mapping[str, Any] = FrozenMap({"recipe": "", "gpu_type": "", "dtype": "", "gpus": 1})
"""For keys that [workload] must have, where they are wrong and the others are still to be looked at."""

TARGET_KEYS = tuple(field.name for field in attrs.fields(TargetTable))


def check_tables(tables: Mapping[str, Any]) -> tuple[SpecTables | None, TargetTable | None, list[Fault]]:
    """The typed tables without what is wrong, the [target] that can be used, and all that is wrong.

    There are no tables where there is no [workload], no target where something in it is wrong.
    """
    faults = _unknown_tables(tables)
    faults += [_missing(name) for name in ("workload", "target") if name not in tables]

    def take(name: str, cls: type[T], stand_ins: Mapping[str, Any] = FrozenMap()) -> T | None:
        value, wrong = structure(tables[name], cls, name) if name in tables else (None, ())
        faults.extend(wrong)
        if value is not None:
            return value
        return structure({**stand_ins, **_right(tables, name, wrong)}, cls, name)[0]

    workload = take("workload", WorkloadTable, STAND_INS) if "workload" in tables else None
    parallelism, model = take("parallelism", ParallelismTable), take("model", ModelTable)
    measure, profile = take("measure", MeasureTable), take("profile", Profile)
    faults += _image_faults(workload.image if workload else None)
    env, mounts = _strings(tables, "env", faults), _strings(tables, "mounts", faults)
    faults += [*_env_faults(env), *_mount_faults(mounts)]
    faults += [fault for name in TABLES if name != "env" for fault in _secret_faults(tables.get(name), name)]
    target = check_target(tables["target"], faults) if "target" in tables else None
    if not isinstance(framework := tables.get("framework", {}), dict):
        faults.append(Fault(message=f"is {shown(framework)}", key="framework", expected="a table"))
    if workload is None or parallelism is None or model is None or measure is None:
        return None, target, faults
    wrong = keys_of(faults)
    spec = SpecTables(
        workload=attrs.evolve(workload, image=None) if "workload.image" in wrong else workload,
        parallelism=parallelism,
        model=model,
        measure=measure,
        profile=profile,
        env=FrozenMap((name, value) for name, value in env.items() if f"env.{name}" not in wrong),
        mounts=FrozenMap((path, value) for path, value in mounts.items() if _mount_key(path) not in wrong),
        gpus_per_node=_right(tables, "target", faults).get("gpus_per_node"),
    )
    return spec, target, faults


def _right(tables: Mapping[str, Any], name: str, faults: Iterable[Fault]) -> dict[str, Any]:
    """A table without the keys that have one of these faults; nothing where it is no table."""
    table = tables.get(name)
    return without(table, keys_of(faults), name) if isinstance(table, Mapping) else {}


def _missing(name: str) -> Fault:
    needs = "scheduler, or with the name of one in the targets file" if name == "target" else "recipe"
    return Fault(message=MISSING, key=name, expected=f"a table [{name}] with a {needs}")


def _unknown_tables(tables: Mapping[str, Any]) -> list[Fault]:
    known = [*TABLES, "sweep"]
    faults = [unknown_key(name, name, known) for name in tables if name not in TABLES]
    return [attrs.evolve(fault, nearest=nearest_key(fault.key or "", known)) for fault in faults]


def _strings(tables: Mapping[str, Any], name: str, faults: list[Fault]) -> Mapping[str, str]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        expected = describe(Mapping[str, str])
        faults.append(Fault(message=f"is {shown(table)}", key=name, expected=expected))
        return FrozenMap()
    wrong = {key: value for key, value in table.items() if not isinstance(value, str)}
    faults.extend(
        Fault(message=f"is {shown(value)}", key=f"{name}.{key}", expected="a string") for key, value in wrong.items()
    )
    return FrozenMap((key, value) for key, value in table.items() if key not in wrong)


def _image_faults(image: str | None) -> list[Fault]:
    if image is None or IMAGE.fullmatch(image):
        return []
    expected = 'an image such as "registry.example/name:tag", without blanks'
    return [Fault(message=f"is {shown(image)}", key="workload.image", expected=expected)]


def _env_faults(env: Mapping[str, str]) -> list[Fault]:
    faults = []
    for name, value in env.items():
        key = f"env.{name}"
        if not VARIABLE_NAME.fullmatch(name):
            faults.append(Fault(message="is not the name of a variable", key=key, expected="letters, digits and _"))
        elif SECRET_VARIABLE.search(name):
            faults.append(_secret(key, f"{name} in the environment of llmb instead"))
        elif OURS.fullmatch(name):
            faults.append(Fault(message="is set by llmb for each task", key=key, expected="another variable"))
        if "\0" in value:
            faults.append(Fault(message="holds a NUL character", key=key, expected="text"))
    return faults


def _secret(key: str, expected: str) -> Fault:
    return Fault(message=NOT_FOR_RECORDS, key=key, expected=expected)


def _secret_faults(table: Any, key: str) -> list[Fault]:
    """Strings under a name that is a secret's, in any table: they would reach records and command lines."""
    faults = []
    for name, value in table.items() if isinstance(table, Mapping) else ():
        if isinstance(value, str) and SECRET_NAME.search(name):
            faults.append(_secret(f"{key}.{name}", "it in a variable of the environment of llmb"))
        faults += _secret_faults(value, f"{key}.{name}")
    return faults


def _mount_faults(mounts: Mapping[str, str]) -> list[Fault]:
    faults: list[Fault] = []
    sources: dict[str, str] = {}  # of each path inside
    for source, target in mounts.items():
        path, _, mode = target.partition(":")
        expected = '"/path/outside" = "/path/inside" or "/path/inside:ro"'
        if not source.startswith("/"):
            faults.append(Fault(message="is no absolute path", key=_mount_key(source), expected=expected))
        elif not path.startswith("/") or mode not in ("", "ro", "rw"):
            faults.append(Fault(message=f"is {shown(target)}", key=_mount_key(source), expected=expected))
        elif (first := sources.setdefault(posixpath.normpath(path), source)) != source:
            message = f'is mounted at {path}, and "{first}" too'
            faults.append(Fault(message=message, key=_mount_key(source), expected="another path inside"))
    return faults


def _mount_key(source: str) -> str:
    return f'mounts."{source}"'


def check_target(table: Any, faults: list[Fault]) -> TargetTable | None:
    """The core's keys of [target]; the others are for the scheduler's own class."""
    if not isinstance(table, dict):
        expected = 'a table [target], such as scheduler = "local"'
        faults.append(Fault(message=f"is {shown(table)}", key="target", expected=expected))
        return None
    own = {key: value for key, value in table.items() if key in TARGET_KEYS}
    target, wrong = structure(own, TargetTable, "target")
    if isinstance(table.get("name"), str):  # the targets file has no such target, or that has none, and so it was told
        wrong = tuple(fault for fault in wrong if fault.message != MISSING)
    faults.extend(wrong)
    if target is None:
        faults.extend(_place_faults_beside(own, wrong))
    return target


def _place_faults_beside(table: Mapping[str, Any], wrong: Iterable[Fault]) -> Iterator[Fault]:
    """What is wrong with the place where other keys are wrong, and a named target's may be missing."""
    told = keys_of(wrong)
    right = structure({"scheduler": "", **without(table, told, "target")}, TargetTable, "target")[0]
    for fault in place_faults(right) if right else ():
        if fault.key not in told and (fault.message != MISSING or "name" not in table):
            yield fault


def place_faults(target: TargetTable) -> Iterator[Fault]:
    """Where the runs go must be known before anything is asked there."""
    host, workdir = target.host, target.workdir
    if host is not None and not _is_host(host):
        expected = '"host", "user@host" or "user@host:port" (a port from 1 to 65535), as ssh takes it'
        yield Fault(message=f"is {shown(host)}", key="target.host", expected=expected)
        host = None
    if host and not workdir:
        expected = f"a directory of {host} that all its nodes share"
        yield Fault(message=MISSING, key="target.workdir", expected=expected)
    if workdir is not None and not (workdir.startswith("/") and workdir.isprintable()):
        expected = (
            f"an absolute path on {host} (its home is what `ssh {host} pwd` prints)" if host else "an absolute path"
        )
        yield Fault(message=f"is {shown(workdir)}", key="target.workdir", expected=expected)


def _is_host(host: str) -> bool:
    found = HOST.fullmatch(host)
    return found is not None and 1 <= int(found["port"] or 22) <= LAST_PORT


def check_options(
    table: Mapping[str, Any], cls: type[T], key: str, also: tuple[str, ...] = ()
) -> tuple[T | None, tuple[Fault, ...]]:
    """A plugin's own table; ``also`` are the core's keys of the same table, for the nearest name."""
    options, faults = structure(table, cls, key)
    known = (*(field.name for field in attrs.fields(cast("Any", cls))), *also)
    return options, tuple(_with_known(fault, key, known) for fault in faults)


def required_options(cls: type) -> dict[str, str]:
    """The keys of a plugin's own table that must be stated, each with what it holds."""
    fields = attrs.fields(attrs.resolve_types(cast("Any", cls)))
    return {field.name: describe(field.type) for field in fields if field.default is attrs.NOTHING}


def _with_known(fault: Fault, table: str, known: Sequence[str]) -> Fault:
    above, _, name = (fault.key or "").rpartition(".")
    of_table_itself = fault.message == NOT_A_KEY and above == table
    return unknown_key(f"{table}.{name}", name, known) if of_table_itself else fault
