"""The commands that look at the record of runs."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from llmb.cli.document import print_json
from llmb.cli.main import app
from llmb.cli.run import AsJson

FOLLOW_PAUSE_S = 0.2

OneRun = Annotated[str, typer.Argument(metavar="RUN", help="A run id, or a unique prefix of one.", show_default=False)]


@app.command("runs")
def list_runs(as_json: AsJson = False) -> None:
    """List all runs of the record, the newest last."""
    from llmb.cli.results import print_runs
    from llmb.drive import index
    from llmb.paths import home_folder

    found = index.list_runs()
    if as_json:
        print_json({"runs": [each.as_dict() for each in found]})
    elif found:
        print_runs(found)
    else:
        typer.echo(f"llmb: no run is recorded in {home_folder()} yet", err=True)


@app.command()
def show(run: OneRun, as_json: AsJson = False) -> None:
    """Show one run: state, figures, verdict, why it broke if it did."""
    from llmb.cli.results import print_results
    from llmb.drive.result import find_run

    found = find_run(run)
    if as_json:
        print_json(found.as_dict())
    else:
        print_results([found])


@app.command()
def logs(
    run: OneRun,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run has ended.")] = False,
) -> None:
    """Print the logs of a run. With -f it is followed as `llmb attach` does, and its logs are shown."""
    from llmb.drive.record import find_record
    from llmb.drive.runs import attach

    record = find_record(run)
    printer = LogPrinter(record.logs)
    printer.print_new()
    if not follow or record.ended:
        printer.print_why_none(record.run_id)
        return

    def show_and_wait(pause_s: float) -> None:
        printer.print_new()
        time.sleep(min(pause_s, FOLLOW_PAUSE_S))

    try:
        attach([record.run_id]).drive(wait=show_and_wait)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    printer.print_new()
    printer.print_why_none(record.run_id)


class LogPrinter:
    """Prints the copies of a run's logs as they grow, under a heading where it changes from one log to another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shown: dict[str, int] = {}
        self._last = ""
        self._within_line = False

    def print_new(self) -> None:
        """What the copies hold beyond what was printed; the one that was written last comes last."""
        from llmb.logs.read_blocks import blocks_of

        files = sorted(self._folder.glob("*"), key=lambda path: (path.stat().st_mtime_ns, path.name))
        for file in files:
            for block in blocks_of(file, self._shown.get(file.name, 0)):
                if len(files) > 1:
                    self._head(file.name)
                self._shown[file.name] = self._shown.get(file.name, 0) + len(block)
                self._last, self._within_line = file.name, not block.endswith(b"\n")
                sys.stdout.buffer.write(block)
        sys.stdout.flush()

    def print_why_none(self, run_id: str) -> None:
        """A line for people where there was no log to print."""
        from llmb.drive.result import find_run

        if not self._shown:
            run = find_run(run_id)
            cause = run.failure.cause if run.failure else run.reason
            typer.echo(f"llmb: {run_id} ({run.state}) has no log{f': {cause}' if cause else ''}", err=True)

    def _head(self, name: str) -> None:
        if name != self._last:
            sys.stdout.write(("\n" if self._within_line else "") + f"==> {name} <==\n")
            sys.stdout.flush()
