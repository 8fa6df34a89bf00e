"""``llmb logs``: the log copies of a run, printed as they grow."""

from __future__ import annotations

import codecs
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.exit_codes import INTERRUPTED
from llmb.cli.options import OneRun, find_run_or_newest

PAUSE_S = 0.2
"""The pause between two checks for new log lines, which another process may write."""

BLOCK_BYTES = 1 << 16

SAMPLES = "telemetry."
"""The beginning of the name of a log of [telemetry], which has numbers for programs alone."""


def logs(
    run: OneRun = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow the run to its end, as attach does.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print colours and control characters on a terminal too, as into a pipe.")
    ] = False,
) -> None:
    """Print the logs of a run."""
    result = find_run_or_newest(run)
    printer = LogPrinter(Path(result.directory) / "logs", raw=raw or not output.stdout().isatty())
    if follow and not result.ended:
        _follow(result, printer, command=f"llmb logs -f{' --raw' if raw else ''}")
        result = llmb.find_run(result.run_id)
    else:
        printer.print_new()
    if not printer.printed:
        is_judged = result.verdict or result.state == "completed"  # this reason explains no missing logs
        reason = "" if is_judged else result.reason
        cause = result.failure.cause if result.failure else reason
        output.print_message(f"{result.run_id} ({result.state}) has no logs{f': {cause}' if cause else ''}")


def _follow(run: llmb.RunResult, printer: LogPrinter, *, command: str) -> None:
    """Print what is new until the run has ended. After Ctrl-C, print the command that continues."""
    try:
        _print_events(run, printer)
    except KeyboardInterrupt:
        output.end_interrupted_line()
        output.print_progress(f"detached; follow with: {command} {run.run_id}")
        raise typer.Exit(INTERRUPTED) from None


def _print_events(run: llmb.RunResult, printer: LogPrinter) -> None:
    from llmb.cli.views.plain_view import describe_shared_event

    try:
        printer.print_new()  # before the wait for the target
        if not printer.printed:
            output.print_message(f"{run.run_id} ({run.state}) has no logs yet")
        with llmb.attach([run.run_id]) as session:
            for event in session.events(sleep=printer.print_while_sleeping):
                printer.print_new()
                if notice := describe_shared_event(event):
                    output.print_message(notice)
    finally:
        printer.print_new()


class LogPrinter:
    """Prints what is new in the files of a folder, with a heading when the output switches to another file.

    Without ``raw``, the output is printable text.
    """

    def __init__(self, folder: Path, *, raw: bool) -> None:
        self._folder = folder
        self._raw = raw
        self._decoders = defaultdict[str, codecs.IncrementalDecoder](
            lambda: codecs.getincrementaldecoder("utf-8")("replace")  # keeps a character cut at the end of a block
        )
        self.printed: dict[str, int] = {}
        """The number of bytes that were printed of each file."""
        self._last = ""
        self._within_line = False

    def print_new(self) -> None:
        """Print what the files gained since the last call, the most recently written file last."""
        try:
            logs = [path for path in self._folder.iterdir() if not path.name.startswith(SAMPLES)]
            files = sorted(logs, key=lambda path: (path.stat().st_mtime_ns, path.name))
            for file in files:
                self._print_file(file, with_heading=len(files) > 1)
        except FileNotFoundError:  # there are no logs yet, or the record is being deleted
            return
        except OSError as error:
            raise llmb.RecordError(f"cannot read {error.filename or self._folder}: {error.strerror}") from error
        output.stdout().flush()

    def print_while_sleeping(self, seconds: float) -> None:
        """Sleep for so many seconds, and print meanwhile what another process adds to the files."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.print_new()
            time.sleep(min(left, PAUSE_S))

    def _print_file(self, file: Path, *, with_heading: bool) -> None:
        offset = self.printed.get(file.name, 0)
        if file.stat().st_size <= offset:
            return
        # Everything is noted before it is printed: Ctrl-C may end a print, and the last call prints only the rest.
        is_other, self._last = file.name != self._last, file.name
        if with_heading and is_other:
            begin = "\n" if self._within_line else ""
            output.print_text(f"{begin}==> {llmb.printable_line(file.name)} <==")
        with file.open("rb") as content:
            content.seek(offset)
            for block in iter(partial(content.read, BLOCK_BYTES), b""):
                self.printed[file.name] = content.tell()
                self._within_line = not block.endswith(b"\n")
                if self._raw:
                    output.stdout().buffer.write(block)
                else:
                    output.stdout().write(llmb.printable_text(self._decoders[file.name].decode(block)))
