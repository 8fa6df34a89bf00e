"""The ``llmb`` command: its commands, and how every fault ends."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, TextIO

import attrs
import typer

from llmb.cli.document import print_json
from llmb.cli.streams import OutputLostError, flush_output, watch_streams
from llmb.values.errors import LlmbError, PluginWarning

app = typer.Typer(
    name="llmb",
    help="Benchmark the training of large language models: one spec, one command.",
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # its tracebacks show local variables, secrets among them
)


def _version(wanted: bool) -> None:
    if wanted:
        from llmb.version import VERSION

        typer.echo(f"llmb {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Benchmark the training of large language models: one spec, one command."""


def main() -> None:
    """Run the command line. Faults are lines on standard error (or one JSON document), a bug keeps its traceback."""
    warnings.showwarning = _warn
    watch_streams()
    from llmb.cli import figures, inspect, run, runs  # noqa: F401  # they add their commands to the app

    sys.exit(_exit_status(sys.argv[1:]))


def _exit_status(arguments: list[str]) -> int:
    try:
        status = _run(arguments)
        flush_output()
    except OutputLostError as lost:
        for told in lost.args:
            typer.echo(f"llmb: {told}", err=True)
        return lost.exit_code
    return status


def _run(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    try:
        return app(arguments or ["--help"], standalone_mode=False, prog_name="llmb") or 0
    except LlmbError as error:
        _tell(error, as_json)
        return error.exit_code
    except typer.TyperException as error:  # an option or argument that is not one
        _tell(_as_fault(error), as_json)
        return 2
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("llmb: interrupted", err=True)
        return 130


def _as_fault(error: typer.TyperException) -> LlmbError:
    """One line: what is wrong with the arguments, and where to look."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "llmb"
    return LlmbError(f"{error.format_message().rstrip('.')}; see `{command} --help`")


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A plugin that is left out is one line for the user; any other warning is for a developer, as Python shows it."""
    about_plugin = issubclass(category, PluginWarning)
    text = f"llmb: {message}\n" if about_plugin else warnings.formatwarning(message, category, filename, lineno, line)
    (file or sys.stderr).write(text)


def errors_of(error: LlmbError) -> list[dict[str, str | None]]:
    """Its faults as ``--json`` prints them."""
    return [attrs.asdict(fault) for fault in error.faults]


def tell(error: LlmbError) -> None:
    """Its faults on standard error, a line each."""
    for fault in error.faults:
        typer.echo(f"llmb: {fault}", err=True)


def _tell(error: LlmbError, as_json: bool) -> None:
    if as_json:
        print_json({"errors": errors_of(error)})
    else:
        tell(error)
