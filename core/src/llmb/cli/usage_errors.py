"""Errors of a command line: what is missing or unknown, in one line, with the nearest name that would be valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import typer

import llmb

ONE_OF = {"metrics": ("--step-time", "--tflops-per-gpu"), "report": ("--output", "--junit", "--csv")}
"""Options of which a command requires one, by the command. The command itself rejects a call without any of them."""

OTHER_NAMES = {
    **dict.fromkeys(("status", "list", "ls", "history", "jobs"), "runs"),
    **dict.fromkeys(("start", "submit", "launch", "bench", "benchmark"), "run"),
    **dict.fromkeys(("stop", "kill", "abort"), "cancel"),
    **dict.fromkeys(("follow", "watch", "resume"), "attach"),
    **dict.fromkeys(("result", "results", "info"), "show"),
    "check": "validate",
    "diff": "compare",
    "tail": "logs",
    "models": "recipes",
    "init": "recipes",
    "config": "help targets",
    "version": "--version",
    **{topic: f"help {topic}" for topic in ("spec", "targets", "exit-codes")},
}
"""Words that are no commands, such as those of other programs, and the commands of `llmb` for the same purpose."""

SIMILAR = 0.7
"""How similar a command must be to be suggested. Commands are short, so that even different ones share letters."""


def nearest_command(word: str, names: Iterable[str], others: Mapping[str, str]) -> str | None:
    """Return the command or topic that the user meant, or None. ``others`` are other names for some of them."""
    found = llmb.nearest_name(word, [*names, *others], cutoff=SIMILAR)
    return others.get(found, found) if found else None


def describe_usage_error(error: typer.TyperException) -> llmb.LlmbError:
    """Return an error of one line that names the wrong argument and the help to read."""
    context = getattr(error, "ctx", None)
    if not context:
        return llmb.LlmbError(_first_lower(error.format_message()))
    message, nearest = _describe(error, context)
    return llmb.LlmbError(llmb.Fault(message=f"{message}; see `{context.command_path} --help`", nearest=nearest))


def _describe(error: typer.TyperException, context: Any) -> tuple[str, str | None]:
    """Return the message of an error and the nearest valid name. Typer does not publish the classes of its errors."""
    kind, message = type(error).__name__, error.format_message()
    if kind == "MissingParameter":
        return _describe_missing(context), None
    if kind == "NoSuchOption":
        return _describe_unknown_option(error.option_name, context)  # type: ignore[attr-defined]
    if message.startswith("No such command "):
        word = message.removeprefix("No such command ").partition(". Did you mean ")[0].rstrip(".")[1:-1]
        return f"no such command {word!r}", nearest_command(word, context.command.commands, OTHER_NAMES)
    if message.startswith("Got unexpected extra argument"):
        return f"unexpected argument {' '.join(message.split()[4:]).strip('()')!r}", None
    if number := _expected_number(error):
        value, name = error.message.partition(" is not ")[0], error.param.opts[0]  # type: ignore[attr-defined]
        return f"{name}: invalid value {value}; expected {number}", None
    return _first_lower(message), None


def _describe_missing(context: Any) -> str:
    """Return a message with all required arguments and options that are missing. Those that are given come first."""
    missing = [each for each in context.command.params if each.required and each.name not in context.params]
    parts = []
    for kind in ("argument", "option"):
        names = [_name(each) for each in missing if each.param_type_name == kind]
        if names:
            parts.append(f"{kind}{'s' if len(names) > 1 else ''} {', '.join(names)}")
    options = {opt: each.name for each in context.command.params for opt in each.opts}
    group = ONE_OF.get(context.command.name, ())
    text = f"missing {' and '.join(parts)}"
    if not group or any(context.params.get(options[each]) for each in group):
        return text
    return f"{text}, and {', '.join(map(repr, group[:-1]))} or {group[-1]!r}"


def _name(parameter: Any) -> str:
    is_argument = parameter.param_type_name == "argument"
    return repr(parameter.metavar or parameter.name.upper()) if is_argument else repr(parameter.opts[0])


def _describe_unknown_option(name: str, context: Any) -> tuple[str, str | None]:
    """Return the message and the nearest option. Options share the dashes, so that these do not count."""
    command = context.command
    if any(name in each.opts for sub in getattr(command, "commands", {}).values() for each in sub.params):
        return f"{name} must come after the command", None
    options = {opt.lstrip("-"): opt for each in command.params for opt in each.opts if opt.startswith("--")}
    if "set" in options and (setting := _setting_of_key(name.lstrip("-").replace("-", "_"))):
        return f"no such option {name}", setting
    nearest = llmb.nearest_name(name.lstrip("-"), options)
    return f"no such option {name}", options.get(nearest or "")


def _setting_of_key(key: str) -> str | None:
    """Return the option that sets the key of this name in a spec, or None if no table has such a key."""
    tables = llmb.json_schema()["properties"]
    found = (table for table, schema in tables.items() if key in schema.get("properties", {}))
    return next((f"--set {table}.{key}=VALUE" for table in found), None)


def _expected_number(error: Any) -> str:
    """Return which numbers an option accepts, or "" if the error is another one."""
    kind = getattr(getattr(error, "param", None), "type", None)
    number = {"int": "an integer", "float": "a number"}.get(getattr(kind, "name", "").removesuffix(" range"))
    if not number or " is not " not in error.message:
        return ""
    least = getattr(kind, "min", None)
    return number if least is None else f"{number} of at least {least}"


def _first_lower(text: str) -> str:
    text = text.rstrip(".")
    return f"{text[:1].lower()}{text[1:]}"
