"""The ``llmb`` command: its subcommands, and how errors become messages and exit codes."""

from __future__ import annotations

import copy
import functools
import gc
import os
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
from llmb.cli.commands.help import help_topic
from llmb.cli.commands.logs import logs
from llmb.cli.commands.metrics import metrics
from llmb.cli.commands.new_plugin import new_plugin
from llmb.cli.commands.parse import parse
from llmb.cli.commands.plugins import plugins
from llmb.cli.commands.recipes import recipes
from llmb.cli.commands.report import report
from llmb.cli.commands.run import run
from llmb.cli.commands.runs import runs
from llmb.cli.commands.schema import schema
from llmb.cli.commands.show import show
from llmb.cli.commands.validate import validate
from llmb.cli.exit_codes import INTERRUPTED, INVALID_INPUT
from llmb.cli.help_screens import EXIT_CODES, FIRST_COMMANDS, Command, GroupedCommands, epilog
from llmb.cli.options import (
    GLOBAL_OPTIONS,
    OptionsError,
    Quiet,
    Verbose,
    global_options_first,
    reject_combination,
)
from llmb.cli.usage_errors import describe_usage_error

COMMANDS = (
    *(run, attach, cancel, logs, validate, doctor, runs, show, compare, report, bundle, parse, grade, metrics, recipes),
    *(plugins, schema),
)
"""The subcommands. `GROUPS` is their order in ``llmb --help``."""

NEW_OBJECTS_PER_COLLECTION = 100_000
"""New objects after which Python searches for unused cycles. By default, after 700, it searches long logs again."""

app = typer.Typer(
    name="llmb",
    cls=GroupedCommands,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["--help", "-h"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # they print local variables, which may contain secrets
)
for _command in COMMANDS:
    app.command(_command.__name__, cls=Command, epilog=epilog(_command.__name__))(_command)
app.command("new-plugin", cls=Command, epilog=epilog("new-plugin"))(new_plugin)
app.command("help", cls=Command, epilog=epilog("help"))(help_topic)

COMPLETION = "_LLMB_COMPLETE"
"""The variable with which a shell requests the completion of a command line."""


def _print_version(requested: bool) -> None:
    if requested:
        plugins = llmb.plugin_versions().items()
        lines = [f"llmb {llmb.VERSION}", *(f"{name} {version}" for name, version in plugins)]
        output.print_text("\n".join(lines))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the versions and exit.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Benchmark the training of large language models."""
    reject_combination({"--quiet": quiet, "--verbose": verbose})
    output.quiet.set(quiet)
    if verbose:
        output.print_host_commands()


def main() -> None:
    """Run the command line of this process and exit."""
    gc.set_threshold(NEW_OBJECTS_PER_COLLECTION)
    warnings.showwarning = _print_warning
    output.watch_streams()
    exit_code = execute(sys.argv[1:])
    gc.freeze()  # Python would search all objects for unused cycles again when it exits
    sys.exit(exit_code)


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
    if not arguments and COMPLETION not in os.environ:
        output.print_text(FIRST_COMMANDS)
        return 0
    words = global_options_first(arguments)
    command = next((each for each in words if each not in GLOBAL_OPTIONS), "")
    try:
        _reject_empty(arguments)
        return _app_for(command)(words, standalone_mode=False, prog_name="llmb") or 0
    except llmb.LlmbError as error:
        _print_traceback()
        _print_error(error, as_json)
        return error.exit_code
    except typer.TyperException as error:
        _print_error(describe_usage_error(error), as_json)
        return INVALID_INPUT
    except OSError as error:
        if "--install-completion" not in arguments:
            raise
        file, advice = error.filename, "`llmb --show-completion` prints the completion"
        _print_error(llmb.LlmbError(f"cannot write {file}: {error.strerror}; {advice}"), as_json)
        return INVALID_INPUT
    except (typer.Abort, KeyboardInterrupt):
        _print_error(llmb.LlmbError("interrupted"), as_json)
        return INTERRUPTED


def _reject_empty(arguments: Sequence[str]) -> None:
    """Raise OptionsError for an empty argument, which Path would take for the current directory."""
    if "" in arguments:
        before = ["llmb", *arguments][arguments.index("")]
        raise OptionsError(f"the argument after {before} is empty; probably a variable of the shell is not set")


@functools.cache
def _app_for(command: str) -> typer.Typer:
    """Return an app with this command only. Typer takes longer to create all commands than most commands take.

    Return all commands for ``llmb help``, an unknown command, and the options of ``llmb`` itself.
    """
    found = [each for each in app.registered_commands if each.name == command and command != "help"]
    if not found:
        return app
    narrowed = copy.copy(app)
    narrowed.registered_commands = found
    return narrowed


def _print_traceback() -> None:
    """Print where the error was raised if ``LLMB_DEBUG`` is set. A traceback has no values of variables."""
    if os.environ.get("LLMB_DEBUG"):
        import traceback

        for line in traceback.format_exc().splitlines():
            output.print_progress(llmb.mask_secrets(line))


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
        output.print_message(str(message))
    else:
        text = warnings.formatwarning(message, category, filename, lineno, line)
        (file or sys.stderr).write(llmb.printable_text(text))
