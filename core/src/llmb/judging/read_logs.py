"""Reading the logs of one run for `llmb.grade`, whichever installed framework wrote them."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from llmb.parsing.directories import read_path
from llmb.parsing.parse_log import LogReader, ParsedLog
from llmb.parsing.recognise_framework import read_with_others
from llmb.plugins.registry import PluginRegistry
from llmb.values.errors import Fault, LogError
from llmb.values.recipe import Window
from llmb.values.run import Run


def read_run(
    paths: Sequence[Path],
    framework: str,
    registry: PluginRegistry,
    window: Window,
    steps: int | None,
    graded_run: Callable[[], Run[Any]],
) -> ParsedLog:
    """Parse the logs of one run's ranks. A directory contains one log per rank.

    If the logs have no step of ``framework``, the installed framework that finds most steps is used. A parser that
    needs the sizes of the run reads the logs again with those of ``graded_run``. Raise LogError if a log cannot be
    read, and PluginError if the framework is unknown.
    """

    def read(name: str, known_run: Run[Any] | None = None) -> ParsedLog:
        reader = LogReader(framework=name, registry=registry, window=window, steps_requested=steps, known_run=known_run)
        files = [file for path in paths for file in (_files_of_ranks(path, reader) if os.path.isdir(path) else [path])]
        return reader.read(files)

    log = read(framework)
    if log.series.has_notice("run unknown") and all(map(os.path.isfile, log.paths)):  # a pipe cannot be read again
        log = read(framework, graded_run())
    return log if log.steps else read_with_others(read, framework, registry) or log


def _files_of_ranks(folder: Path, reader: LogReader) -> list[Path]:
    """Return the logs in a directory; without any, all files that are named like logs. Raise LogError."""
    found = read_path(folder, reader)
    if found.faults:
        raise LogError(*found.faults)
    files = [log.path for log in found.logs] or [file.path for file in found.passed_over]
    if not files:
        raise LogError(Fault(message="no logs found", file=str(folder), expected="a directory with one log per rank"))
    return files
