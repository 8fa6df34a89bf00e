"""``llmb logs``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.exit_codes import INTERRUPTED
from llmb.cli.options import OneRun
from llmb.cli.views.logs import LogPrinter


def logs(
    run: OneRun,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow the run to its end, as attach does.")] = False,
) -> None:
    """Print the logs of a run."""
    result = llmb.find_run(run)
    printer = LogPrinter(Path(result.directory) / "logs")
    printer.print_new()
    if follow and not result.ended:
        _follow(result.run_id, printer)
        result = llmb.find_run(result.run_id)
    if not printer.printed_anything:
        cause = result.failure.cause if result.failure else result.reason
        output.print_message(f"{result.run_id} ({result.state}) has no logs{f': {cause}' if cause else ''}")


def _follow(run_id: str, printer: LogPrinter) -> None:
    from llmb.cli.views.progress import describe_notice

    try:
        with llmb.attach([run_id]) as session:
            for event in session.events(sleep=printer.print_while_sleeping):
                printer.print_new()
                if notice := describe_notice(event):
                    output.print_message(notice)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    finally:
        printer.print_new()
