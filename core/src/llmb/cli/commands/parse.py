"""``llmb parse``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.options import AsJson, reject_combination

if TYPE_CHECKING:
    from llmb.parsing.directories import ParsedPath

Logs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="LOG",
        help="Logs, directories of logs, or - for standard input.",
        show_default="the framework's own log directory",
    ),
]
STANDARD_INPUT = Path("/dev/stdin")


def parse(
    framework: Annotated[str, typer.Option("--framework", metavar="NAME", help="The framework that wrote the logs.")],
    logs: Logs = None,
    window: Annotated[
        str | None,
        typer.Option(
            "--window",
            metavar="last|35:44",
            help="Steps of the mean: the last step, or a range.",
            show_default="the framework's usual window",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", min=1, help="Number of steps in a complete log.")
    ] = None,
    as_json: AsJson = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV: one line per step of one log, or per log of several.")
    ] = False,
    full_names: Annotated[
        bool, typer.Option("--full-names", help="Show complete file names in the table of several logs.")
    ] = False,
) -> None:
    """Read training logs: every step, and the mean over a window."""
    from llmb.cli.views import parsed_logs
    from llmb.parsing.directories import LogReader

    reject_combination({"--json": as_json, "--csv": as_csv})
    pool = llmb.PluginRegistry()
    paths = [STANDARD_INPUT if str(each) == "-" else each for each in logs or _own_directory(framework, pool)]
    reader = LogReader(framework=framework, pool=pool, window=_parse_window(window), steps_asked=steps)
    read = [reader.read(path) for path in paths]
    found = [log for each in read for log in each.logs]
    faults = [fault for each in read for fault in each.faults]
    error = llmb.LogError(*faults) if faults else None
    if error and not found:
        raise error
    single = found[0] if len(paths) == 1 and not paths[0].is_dir() else None
    if as_json:
        errors = {"errors": output.error_documents(error)} if error else {}
        several = {**parsed_logs.logs_document(read, full_names=full_names), **errors}
        output.print_json(single.as_dict() if single else several)
    elif as_csv:
        text = parsed_logs.steps_csv(single) if single else parsed_logs.logs_csv(found, full_names=full_names)
        output.print_text(text, newline=False)
    elif single:
        parsed_logs.print_log(single)
    else:
        parsed_logs.print_logs(found, full_names=full_names)
    _finish(read, error, framework, as_json=as_json)


def _finish(read: Sequence[ParsedPath], error: llmb.LlmbError | None, framework: str, *, as_json: bool) -> None:
    """Report files without steps, and raise Exit with the exit code if there are any."""
    from llmb.cli.views import parsed_logs

    if not as_json:
        for line in parsed_logs.passed_over_lines(read):
            output.print_message(line)
        if error:
            output.print_error(error)
    without_step = [(each.path, reason) for each in read if (reason := each.why_no_step(framework))]
    for path, reason in without_step:
        output.print_message(f"{path}: {reason}")
    if error or without_step:
        raise typer.Exit(error.exit_code if error else 1)


def _own_directory(framework: str, pool: llmb.PluginRegistry) -> list[Path]:
    """Return the directory in which the framework writes its logs, if it exists here."""
    name = pool.framework(framework).log_files.directory
    if name is None:
        raise typer.BadParameter(f"{framework} has no log directory of its own; name a log", param_hint="LOG")
    if not Path(name).is_dir():
        message = f"no directory {name} here, where {framework} writes its logs; name a log or a directory"
        raise typer.BadParameter(message, param_hint="LOG")
    return [Path(name)]


def _parse_window(text: str | None) -> llmb.Window | None:
    if text is None or text == "last":
        return "last" if text else None
    first, colon, last = text.partition(":")
    if colon and first.isdecimal() and last.isdecimal() and int(first) <= int(last):
        return int(first), int(last)
    raise typer.BadParameter(f"{text!r}; expected last, or FIRST:LAST such as 35:44", param_hint="--window")
