"""Decode the tables of one run's spec into typed values, and collect the errors of all tables."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from llmb.hookspecs import FrameworkHooks, SchedulerHooks
from llmb.plugins.guard import decoding
from llmb.spec.check_values import NO_SECRETS, check_env, check_host_and_workdir, check_mounts, check_secrets, mount_key
from llmb.spec.follow_up_errors import keys_of, meant_keys, meant_tables
from llmb.spec.key_hints import KeyHints, add_key_hint
from llmb.spec.latest_result import LatestResult
from llmb.spec.workload_tables import (
    SWEPT_KEYS,
    TABLES,
    MeasureTable,
    ModelTable,
    ParallelismTable,
    SpecTables,
    TargetTable,
    WorkloadTable,
    dotted_keys,
    nearest_key,
)
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap
from llmb.values.profile_and_telemetry import Profile, TelemetrySettings
from llmb.values.texts.error_text import REQUIRED_KEY, UNKNOWN_KEY, invalid_value, unknown_key
from llmb.values.texts.nearest_name import nearest_name
from llmb.values.types.check_types import decode, decode_fields, value_type
from llmb.values.types.value_type import InvalidValueError, with_prefix

T = TypeVar("T")

TARGET_KEYS = tuple(field.name for field in attrs.fields(TargetTable))

_FROM_RECIPE = "one that `llmb recipes ADDRESS` lists"
_EXPECTED_IF_MISSING = {
    "workload.recipe": "an address that `llmb recipes` lists",
    **dict.fromkeys(("workload.gpu_type", "workload.dtype", "workload.gpus"), _FROM_RECIPE),
}
_IN_SEVERAL_TABLES = ("name",)  # a key that users expect in several tables, with another meaning


class TableDecoder:
    """Decodes the tables of a sweep's combinations. Tables that a combination shares with the previous one are kept."""

    def __init__(self) -> None:
        self._decode_others = LatestResult(_decode_others)

    def decode(self, tables: Mapping[str, Any]) -> tuple[SpecTables | None, TargetTable | None, list[Fault]]:
        """Return the valid values of all tables, the core's part of [target], and all errors.

        The first is None without a valid [workload]; the second is None if [target] has an error.
        """
        errors = _unknown_tables(tables)
        errors += [_missing_table(name) for name in ("workload", "target") if name not in tables]
        workload = _decode_workload(tables["workload"], errors) if "workload" in tables else None
        values, target, other_errors = self._decode_others(*(tables.get(name, _MISSING) for name in OTHER_TABLES))
        errors += other_errors
        return (SpecTables(workload=workload, **values) if workload else None), target, errors


_MISSING = object()

OTHER_TABLES = tuple(name for name in TABLES if name != "workload")


def _decode_workload(table: Any, errors: list[Fault]) -> WorkloadTable:
    """Return the valid values of [workload]. Invalid required keys get a value, so that other keys can be checked."""
    values, wrong = decode_fields(table, WorkloadTable, "workload")
    errors += wrong
    errors += check_secrets(table, "workload")
    return WorkloadTable(**{"recipe": "", "gpu_type": "", "dtype": "", "gpus": 1, **values})


def _decode_others(*given: Any) -> tuple[dict[str, Any], TargetTable | None, list[Fault]]:
    """Return the fields of SpecTables except [workload], the core's part of [target], and all errors.

    ``given`` are the values of OTHER_TABLES.
    """
    tables = {name: table for name, table in zip(OTHER_TABLES, given, strict=True) if table is not _MISSING}
    errors: list[Fault] = []

    def take(name: str, cls: type[T], **placeholders: Any) -> T:
        values, wrong = decode_fields(tables.get(name, {}), cls, name)
        errors.extend(wrong)
        return cls(**{**placeholders, **values})

    parallelism = _stated_keys(take("parallelism", ParallelismTable))
    model = _stated_keys(take("model", ModelTable))
    measure = take("measure", MeasureTable)
    profile = take("profile", Profile, tool="nsys") if "profile" in tables else None
    telemetry = take("telemetry", TelemetrySettings, interval=1) if "telemetry" in tables else None
    env, mounts = _strings(tables, "env", errors), _strings(tables, "mounts", errors)
    errors += [*check_env(env), *check_mounts(mounts)]
    errors += [error for name, table in tables.items() for error in check_secrets(table, name)]
    target, gpus_per_node = decode_target(tables["target"], errors) if "target" in tables else (None, None)
    if not isinstance(framework := tables.get("framework", {}), dict):
        errors.append(Fault(message=invalid_value(framework), key="framework", expected="a table"))
    wrong = keys_of(errors)
    values = {
        "parallelism": parallelism,
        "model": model,
        "measure": measure,
        "profile": profile,
        "telemetry": telemetry,
        "env": FrozenMap((name, value) for name, value in env.items() if f"env.{name}" not in wrong),
        "mounts": FrozenMap((path, value) for path, value in mounts.items() if mount_key(path) not in wrong),
        "gpus_per_node": gpus_per_node,
    }
    return values, target, errors


def _stated_keys(table: ParallelismTable | ModelTable) -> dict[str, Any]:
    return attrs.asdict(table, filter=lambda _, value: value is not None)


def decode_target(table: Any, errors: list[Fault]) -> tuple[TargetTable | None, int | None]:
    """Return the core's keys of [target], or None if one has an error, and ``gpus_per_node`` if that is valid.

    `decode_options` decodes the other keys.
    """
    if not isinstance(table, dict):
        expected = 'a table [target], such as scheduler = "local"'
        errors.append(Fault(message=invalid_value(table), key="target", expected=expected))
        return None, None
    own = {key: value for key, value in table.items() if key in TARGET_KEYS or _is_misspelt(key, table)}
    values, wrong = decode_fields(own, TargetTable, "target")
    target = TargetTable(**{"scheduler": "", **values})
    if wrong:
        host_errors = (error for error in check_host_and_workdir(target) if error.key not in keys_of(wrong))
        wrong = (*wrong, *host_errors)
    wrong = (*wrong, *check_env(target.env, "target.env"), *check_mounts(target.mounts, "target.mounts"))
    if "name" in table:  # the error of the name, or of its table, covers missing keys
        wrong = tuple(error for error in wrong if error.message != REQUIRED_KEY)
    errors.extend(wrong)
    return (target if "scheduler" in values and not wrong else None), target.gpus_per_node


def _is_misspelt(key: str, table: Mapping[str, Any]) -> bool:
    """Check whether a key that only a scheduler could know is a misspelt scheduler or name in a table with neither."""
    return not {"scheduler", "name"} & table.keys() and nearest_name(key, TARGET_KEYS) in ("scheduler", "name")


def decode_options(
    plugin: FrameworkHooks[Any] | SchedulerHooks[Any] | None, table: Any, key: str, errors: list[Fault]
) -> Any:
    """Return the plugin's own keys of [framework] or [target] as its class, or None if there are errors.

    A missing table is empty. An unknown plugin and a value that is no table are reported elsewhere.
    """
    table = {} if table is None else table
    if plugin is None or not isinstance(table, dict):
        return None
    core_keys = TARGET_KEYS if key == "target" else ()
    own = {name: value for name, value in table.items() if name not in core_keys}
    with decoding(plugin, "options"):
        options, wrong = decode(own, plugin.options, key)
    known = (*(field.name for field in attrs.fields(plugin.options)), *core_keys)
    errors.extend(_with_known_keys(error, key, known) for error in wrong)
    return options


def required_options(cls: type) -> dict[str, str]:
    """Return the required keys of a plugin's own table, each with a description of its value."""
    return {error.key or "": error.expected or "" for error in decode_fields({}, cls, "")[1]}


def add_hints(
    errors: Collection[Fault], tables: Mapping[str, Any], schedulers: Sequence[str], hints: KeyHints
) -> list[Fault]:
    """Return the errors with better advice: where to find a missing value, how to sweep a list; hide values of secrets.

    A misspelt key or table is one error: the one that was meant is not reported as missing. ``schedulers`` are the
    installed ones.
    """
    expected = dict(_EXPECTED_IF_MISSING)
    if schedulers:
        expected["target.scheduler"] = f"one of {', '.join(schedulers)}"
    errors = [add_key_hint(error, hints) for error in errors]
    meant = meant_keys(errors, tables)
    if "target.name" in meant:  # the named target has the scheduler
        meant |= {"target.scheduler"}
    misspelt = meant_tables(errors)
    kept = [error for error in _hide_secrets(errors) if error.key not in meant and not _lacks_key(error, misspelt)]
    return [_add_sweep_hint(_add_choices(_add_table(error), expected), tables) for error in kept]


def _lacks_key(error: Fault, tables: Collection[str]) -> bool:
    """Check whether an error is that one of these tables lacks a required key."""
    return error.message == REQUIRED_KEY and (error.key or "").partition(".")[0] in tables


def _missing_table(name: str) -> Fault:
    content = "scheduler, or with the name of a target in the targets file" if name == "target" else "recipe"
    return Fault(message="required table is missing", key=name, expected=f"a table [{name}] with a {content}")


def _unknown_tables(tables: Mapping[str, Any]) -> list[Fault]:
    known = [*TABLES, "sweep"]
    errors = [unknown_key(name, name, known) for name in tables if name not in TABLES]
    return [attrs.evolve(error, nearest=nearest_key(error.key or "", known)) for error in errors]


def _strings(tables: Mapping[str, Any], name: str, errors: list[Fault]) -> Mapping[str, str]:
    """Return the strings of a table, and append the errors of other values."""
    table = tables.get(name, {})
    try:
        value_type(Mapping[str, str]).convert(table)
    except InvalidValueError as error:
        errors += with_prefix(name, error.errors)
    items = table.items() if isinstance(table, dict) else ()
    return FrozenMap((key, value) for key, value in items if isinstance(value, str))


def _with_known_keys(error: Fault, table: str, known: Sequence[str]) -> Fault:
    above, _, name = (error.key or "").rpartition(".")
    is_unknown_here = error.message == UNKNOWN_KEY and above == table
    return unknown_key(f"{table}.{name}", name, known) if is_unknown_here else error


def _add_choices(error: Fault, expected: Mapping[str, str]) -> Fault:
    choices = expected.get(error.key or "")
    return attrs.evolve(error, expected=choices) if error.message == REQUIRED_KEY and choices else error


def _add_table(error: Fault) -> Fault:
    """Name the key that an unknown key has in another table, such as ``parallelism.tp`` for ``workload.tp``."""
    table, _, name = (error.key or "").rpartition(".")
    is_misplaced = error.message == UNKNOWN_KEY and table in TABLES and name not in (*TABLES, *_IN_SEVERAL_TABLES)
    return attrs.evolve(error, nearest=dotted_keys().get(name, error.nearest)) if is_misplaced else error


def _add_sweep_hint(error: Fault, tables: Mapping[str, Any]) -> Fault:
    """Mention the sweep if a list, or several values with commas, is given for a key that takes one value."""
    name, _, key = (error.key or "").partition(".")
    table = tables.get(name)
    value = table.get(key) if isinstance(table, Mapping) else None
    several = isinstance(value, list) or (isinstance(value, str) and "," in value)
    if not several or error.message != invalid_value(value) or "list" in (error.expected or ""):
        return error
    if name == "workload" and key in SWEPT_KEYS:
        values = "a list of such values" if isinstance(value, list) else f"the list [{value}]"
        return attrs.evolve(error, expected=f"{error.expected}, or {values}")
    return attrs.evolve(error, expected=f'{error.expected}, or a list in [sweep] under "{error.key}"')


def _hide_secrets(errors: Collection[Fault]) -> list[Fault]:
    """Hide the value of a key that looks like a secret but expects another type than a string."""
    secrets = {error.key for error in errors if error.message.startswith(NO_SECRETS)}
    mistyped = {error.key for error in errors if error.key in secrets and error.message.startswith('invalid value "')}
    return [
        attrs.evolve(error, message="invalid value (hidden)") if error.key in mistyped else error
        for error in errors
        if error.key not in mistyped or not error.message.startswith(NO_SECRETS)
    ]
