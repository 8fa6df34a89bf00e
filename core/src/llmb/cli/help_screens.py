"""The help of ``llmb``: commands in groups, and the first commands for a new user."""

from __future__ import annotations

from typing import Any

import typer.core

from llmb.cli import output
from llmb.cli.command_examples import EXAMPLES

GROUPS = {
    "Run": ("run", "attach", "cancel", "logs", "validate", "doctor"),
    "Analyse": ("runs", "show", "compare", "report", "bundle", "parse", "grade", "metrics"),
    "Explore": ("recipes", "help"),
    "Extend": ("plugins", "schema", "new-plugin"),
}
"""All commands, in the order of ``llmb --help``."""

FIRST_COMMANDS = """\
llmb benchmarks the training of large language models. Begin with:

  llmb doctor
      check what this machine can run, and how to fix what is missing
  llmb recipes maxtext/llama2-tiny --toml > workload.toml
      write a workload for a published configuration (`llmb recipes` lists all)
  llmb run workload.toml
      prepare, submit and follow the workload, and judge its speed

`llmb --help` lists all commands."""
"""What ``llmb`` without arguments prints."""

EXIT_CODES = """\
\b
Exit codes: 0 done; 1 a run failed or a log has no step; 2 invalid input;
3 with --check, a verdict is fail; 4 a target cannot be reached; 130 Ctrl-C."""
"""The end of ``llmb --help``."""


def epilog(command: str) -> str:
    """Return the end of a command's help, with its example."""
    return f"\b\nExample:\n  {EXAMPLES[command]}"


class Command(typer.core.TyperCommand):
    """A command for which standard output is reserved.

    Its usage shows required arguments without braces, which enclose filters of runs.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Its help was printed before, while its options were parsed."""
        output.reserve_stdout()
        return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments of the usage: required ones as they are, others in brackets."""
        pieces = super().collect_usage_pieces(ctx)
        return [each[1:-1] if each.startswith("{") and each.endswith("}") else each for each in pieces]


class GroupedCommands(typer.core.TyperGroup):
    """A group whose help lists its commands under the headings of `GROUPS`."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command. Raise Abort after Ctrl-C, because Typer would exit without a message."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Abort from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section per group, with the same width of the first column."""
        width = max(map(len, self.commands))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), self.commands[name].get_short_help_str(limit=200)) for name in names]
                )
