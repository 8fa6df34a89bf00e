"""The ``llmb`` command: its subcommands, and how errors become messages and exit codes."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, TextIO

import typer

import llmb
from llmb.cli import output
from llmb.cli.commands.attach import attach
from llmb.cli.commands.bundle import bundle
from llmb.cli.commands.cancel import cancel
from llmb.cli.commands.compare import compare
from llmb.cli.commands.doctor import doctor
from llmb.cli.commands.grade import grade
from llmb.cli.commands.logs import logs
from llmb.cli.commands.metrics import metrics
from llmb.cli.commands.parse import parse
from llmb.cli.commands.plugins import plugins
from llmb.cli.commands.recipes import recipes
from llmb.cli.commands.report import report
from llmb.cli.commands.run import run
from llmb.cli.commands.runs import runs
from llmb.cli.commands.show import show
from llmb.cli.commands.validate import validate
from llmb.cli.exit_codes import INTERRUPTED, INVALID_INPUT

COMMANDS = (
    *(run, validate, attach, cancel, runs, show, logs, parse, grade, compare, report, bundle),
    *(metrics, recipes, plugins, doctor),
)
"""The subcommands, in the order of ``llmb --help``."""

NEW_OBJECTS_PER_COLLECTION = 100_000
"""New objects after which Python searches for unused cycles. By default, after 700, it searches long logs again."""

app = typer.Typer(
    name="llmb",
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # they print local variables, which may contain secrets
)
for _command in COMMANDS:
    app.command()(_command)


def _print_version(requested: bool) -> None:
    if requested:
        output.print_text(f"llmb {llmb.VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Benchmark the training of large language models."""


def main() -> None:
    """Run the command line of this process and exit."""
    gc.set_threshold(NEW_OBJECTS_PER_COLLECTION)
    warnings.showwarning = _print_warning
    output.watch_streams()
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code. Bugs propagate as exceptions."""
    try:
        exit_code = _run_command(arguments)
        output.flush()
    except output.OutputLostError as lost:
        for message in lost.args:
            output.print_message(message)
        return lost.exit_code
    return exit_code


def _run_command(arguments: Sequence[str]) -> int:
    as_json = "--json" in arguments
    try:
        return app(list(arguments) or ["--help"], standalone_mode=False, prog_name="llmb") or 0
    except llmb.LlmbError as error:
        _print_error(error, as_json)
        return error.exit_code
    except typer.TyperException as error:
        _print_error(_usage_error(error), as_json)
        return INVALID_INPUT
    except (typer.Abort, KeyboardInterrupt):
        output.print_message("interrupted")
        return INTERRUPTED


def _usage_error(error: typer.TyperException) -> llmb.LlmbError:
    """Return an error of one line that names the wrong argument and the help to read."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "llmb"
    message = error.format_message().rstrip(".")
    return llmb.LlmbError(f"{message[:1].lower()}{message[1:]}; see `{command} --help`")


def _print_error(error: llmb.LlmbError, as_json: bool) -> None:
    if as_json:
        output.print_json({"errors": output.error_documents(error)})
    else:
        output.print_error(error)


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning about a plugin as one line for the user, and any other as Python does, for a developer."""
    if issubclass(category, llmb.PluginWarning):
        text = f"llmb: {llmb.printable_line(str(message))}\n"
    else:
        text = llmb.printable_text(warnings.formatwarning(message, category, filename, lineno, line))
    (file or sys.stderr).write(text)
