"""``llmb help``."""

from __future__ import annotations

from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.usage_errors import OTHER_NAMES, nearest_command

TOPICS = {
    "spec": "the tables of a workload spec",
    "exit-codes": "what each exit code means, for scripts",
    "targets": "machines and clusters, and how llmb reaches them",
}
"""The topics, each with what it is about."""

OTHER_TOPICS = {
    **{topic: topic for topic in TOPICS},
    **dict.fromkeys(("exit-status", "exit", "codes", "errors"), "exit-codes"),
    **dict.fromkeys(("workload", "toml", "keys"), "spec"),
    **dict.fromkeys(("clusters", "hosts", "machines", "ssh"), "targets"),
}
"""The topics by their own and by other names. These names replace those of `OTHER_NAMES`, which are of commands."""


def help_topic(
    context: typer.Context,
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="spec, exit-codes, targets, or a command.")
    ] = None,
) -> None:
    """Explain a topic, or a command."""
    group = context.parent
    assert group
    command = group.command.get_command(group, topic) if topic else None  # type: ignore[attr-defined]
    if topic is None:
        lines = [f"  llmb help {name.ljust(12)}  {summary}" for name, summary in TOPICS.items()]
        output.print_text("\n".join(["Topics:", *lines, "", "`llmb --help` lists the commands."]))
    elif topic in TOPICS:
        output.print_text(llmb.resource_text("llmb.cli.commands.topics", f"{topic}.txt"), newline=False)
    elif command:
        with typer.Context(command, info_name=topic, parent=group) as described:
            output.print_text(command.get_help(described))
    else:
        names = [*TOPICS, *group.command.list_commands(group)]  # type: ignore[attr-defined]
        nearest = nearest_command(topic, names, OTHER_NAMES | OTHER_TOPICS)
        message = f"there is no topic or command {topic!r}; `llmb help` lists the topics"
        raise llmb.LlmbError(llmb.Fault(message=message, nearest=nearest))
