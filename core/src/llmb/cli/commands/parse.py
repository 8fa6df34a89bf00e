"""``llmb parse``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.completion import complete_framework, complete_recipe
from llmb.cli.exit_codes import FAILED
from llmb.cli.options import (
    AsJson,
    OptionsError,
    Steps,
    log_paths,
    parse_window,
    print_ignored_options,
    reject_combination,
    window_option,
    with_option_names,
)

Logs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="LOG...",
        readable=False,  # llmb itself reports a file that cannot be read
        help="Logs, directories of logs, or - for standard input. [default: the framework's log directory]",
    ),
]
Framework = Annotated[
    str | None,
    typer.Option(
        "--framework",
        metavar="NAME",
        help="Framework that wrote the logs, or the file that declares it. [default: that of --recipe, or of the log]",
        autocompletion=complete_framework,
    ),
]
RunRecipe = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        metavar="ADDRESS",
        help="Recipe that was run, for values that the log does not have.",
        autocompletion=complete_recipe,
    ),
]
Gpus = Annotated[int | None, typer.Option("--gpus", metavar="N", min=1, help="Number of GPUs of the run of --recipe.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print a line per step, or per log if there are several.")]
NO_FRAMEWORK = "no installed framework finds a step; the run may have failed before its first one"
NEWEST_FIRST = (
    "the newest line comes first, so the cause of a failure may be missing; reverse the log with `tac`, or read it "
    "from Google Cloud with `gcloud logging read --order=asc`"
)
"""Advice for a log whose steps are complete, but whose messages are not where llmb searches for them."""


def parse(
    logs: Logs = None,
    framework: Framework = None,
    recipe: RunRecipe = None,
    gpus: Gpus = None,
    window: Annotated[str | None, window_option("the framework's usual window")] = None,
    steps: Steps = None,
    run: Annotated[
        int | None,
        typer.Option("--run", metavar="N", min=1, help="Run to read from a log with several runs. [default: the last]"),
    ] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    full_names: Annotated[bool, typer.Option("--full-names", help="With several logs, show complete file names.")] = (
        False
    ),
) -> None:
    """Read training logs: every step, and the mean over a window."""
    from llmb.cli.views.choose_view import show_activity

    reject_combination({"--json": as_json, "--csv": as_csv})
    stated = _stated_framework(framework, recipe, gpus)
    paths = _paths(logs, stated)
    read = partial(llmb.parse_paths, paths, recipe=recipe, gpus=gpus, steps=steps, run=run, window=parse_window(window))
    with with_option_names(), show_activity(f"reading {paths[0]}"):
        name = stated or llmb.recognise_framework(paths)
        parsed = read(framework=name)
        if not stated and (writer := _find_writer(parsed)):
            name, parsed = writer, read(framework=writer)
    faults = [fault for each in parsed for fault in each.faults]
    error = llmb.LogError(*faults) if faults else None
    if error and not any(each.logs for each in parsed):
        raise error
    has_steps = any(each.has_steps for each in parsed)
    if has_steps and not stated:
        output.print_message(f"reading logs of {name}; --framework NAME selects another framework")
    if len(paths) == 1 and not os.path.isdir(paths[0]):
        print_ignored_options({"--full-names": full_names}, "on a single log")
        ignored = {"--window": window is not None, "--steps": steps is not None} if as_csv else {}
        print_ignored_options(ignored, "on the steps of a single log, which --csv prints")
        _print_log(parsed[0].logs[0], as_json=as_json, as_csv=as_csv)
    else:
        _print_logs(parsed, error, as_json=as_json, as_csv=as_csv, full_names=full_names)
    for log in (log for each in parsed for log in each.logs if log.series.newest_first):
        output.print_message(f"{log.path}: {NEWEST_FIRST}")
    all_have_steps = _explain_missing_steps(parsed, name, guessed=not stated and not has_steps)
    if error or not all_have_steps:
        raise typer.Exit(error.exit_code if error else FAILED)


def _paths(logs: Sequence[Path] | None, framework: str | None) -> list[Path]:
    """Return the paths to read, by default the directory in which the framework writes its logs."""
    if logs:
        return log_paths(logs)
    if framework is None:
        raise OptionsError("missing argument 'LOG', or option '--framework'")
    return [_log_directory(framework)]


def _stated_framework(framework: str | None, recipe: str | None, gpus: int | None) -> str | None:
    """Return the framework that the options name, or None. Raise OptionsError if they contradict each other."""
    if gpus is not None and recipe is None:
        raise OptionsError("--gpus requires --recipe")
    return framework or (llmb.framework_of(recipe) if recipe else None)


def _find_writer(parsed: Sequence[llmb.ParsedPath]) -> str | None:
    """Return the framework that has steps in logs without a step of the framework that llmb chose, if any.

    llmb chooses it from a few logs, and these may all be of runs that failed.
    """
    if any(each.has_steps for each in parsed):
        return None
    return next((each.written_by for each in parsed if each.written_by), None)


def _print_log(log: llmb.ParsedLog, *, as_json: bool, as_csv: bool) -> None:
    from llmb.cli.views.parsed_logs import print_log

    if as_json:
        output.print_json(log.as_dict())
    elif as_csv:
        output.print_text(llmb.steps_csv(log.steps), newline=False)
    else:
        print_log(log)


def _print_logs(
    parsed: Sequence[llmb.ParsedPath], error: llmb.LlmbError | None, *, as_json: bool, as_csv: bool, full_names: bool
) -> None:
    from llmb.cli.views.parsed_logs import logs_csv, logs_document, passed_over_lines, print_logs

    if as_json:
        errors = {"errors": output.error_documents(error)} if error else {}
        output.print_json({**logs_document(parsed, full_names=full_names), **errors})
        return
    logs = [log for each in parsed for log in each.logs]
    if as_csv:
        output.print_text(logs_csv(logs, full_names=full_names), newline=False)
    else:
        print_logs(logs, full_names=full_names)
    for line in passed_over_lines(parsed):
        output.print_message(line)
    if error:
        output.print_error(error)


def _explain_missing_steps(parsed: Sequence[llmb.ParsedPath], name: str, *, guessed: bool) -> bool:
    """Print why paths have no steps of the framework. Return True if every path has one.

    If llmb ``guessed`` the framework from a failure, no reason names the framework.
    """
    reasons = [(each, reason) for each in parsed if (reason := each.explain_missing_steps(name))]
    for each, reason in reasons:
        output.print_message(f"{each.path}: {NO_FRAMEWORK if guessed and name in reason else reason}")
    return not reasons


def _log_directory(framework: str) -> Path:
    """Return the directory in which the framework writes its logs, if it exists here."""
    name = llmb.PluginRegistry().framework(framework).log_files.directory
    if name is None:
        raise OptionsError(f"missing argument 'LOG': {framework} has no log directory of its own")
    if not os.path.isdir(name):
        raise OptionsError(f"missing argument 'LOG': no directory {name} here, where {framework} writes its logs")
    return Path(name)
