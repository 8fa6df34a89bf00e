"""The page docs/command-line.md, from the commands of llmb."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import typer.main

import llmb
from llmb.cli.app import app
from llmb.cli.help_screens import EXAMPLES, GROUPS

INTRODUCTION = """\
# Command line

<!-- all blocks: tested by tests/test_screens.py -->
<!-- written by tools/write_docs.py from the commands themselves -->

`llmb --help` lists the commands, and `llmb COMMAND --help` prints the options of one. These options are valid before a
command:
"""


def page() -> str:
    """Return the page: the options of llmb, every command in the order of ``llmb --help``, and the exit codes."""
    group: Any = typer.main.get_command(app)
    context = group.context_class(group, info_name="llmb")
    parts = [INTRODUCTION, "\n".join(_table("option", _records(group, context, "option")))]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [_section(name, group.commands[name], context) for name in names]
    codes = llmb.resource_text("llmb.cli.commands.topics", "exit-codes.txt")
    return "\n".join([*parts, f"## Exit codes\n\n```text\n{codes}```\n"])


def _section(name: str, command: Any, parent: Any) -> str:
    context = command.context_class(command, info_name=name, parent=parent)
    usage = " ".join(["llmb", name, *command.collect_usage_pieces(context)])
    lines = [f"### llmb {name}", "", command.help.strip(), "", "```text", usage, "```", ""]
    lines += _table("argument", _records(command, context, "argument"))
    lines += _table("option", _records(command, context, "option"))
    lines += ["Example:", "", f"```sh\n{EXAMPLES[name]}\n```\n"]
    return "\n".join(lines)


def _records(command: Any, context: Any, kind: str) -> Iterator[tuple[str, str]]:
    """Return the parameters of a kind, each with its help."""
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if parameter.param_type_name == kind and record:
            yield record


def _table(title: str, records: Iterator[tuple[str, str]]) -> list[str]:
    cells = [
        (html.escape(name).replace("|", "&#124;"), " ".join(text.split()).replace("[", r"\[")) for name, text in records
    ]
    rows = [f"| <code>{name}</code> | {text} |" for name, text in cells]
    return [f"| {title} | |", "|---|---|", *rows, ""] if rows else []
