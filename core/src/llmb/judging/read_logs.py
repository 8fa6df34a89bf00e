"""Reading the logs of one run for `llmb.grade`, whichever installed framework wrote them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from llmb.parsing.directories import LogReader
from llmb.parsing.other_frameworks import read_with_others
from llmb.parsing.parse_log import ParsedLog, parse_run
from llmb.plugins.registry import PluginRegistry
from llmb.values.errors import Fault, LogError
from llmb.values.recipe import Window


def read_run(
    paths: Sequence[Path], framework: str, registry: PluginRegistry, window: Window, steps: int | None
) -> ParsedLog:
    """Parse the logs of one run's ranks. A directory contains one log per rank.

    If the logs have no step of ``framework``, the installed framework that finds most steps is used. Raise LogError if
    a log cannot be read, and PluginError if the framework is unknown.
    """
    log = _read(paths, framework, registry, window, steps)
    if log.steps:
        return log
    return read_with_others(lambda name: _read(paths, name, registry, window, steps), framework, registry) or log


def _read(
    paths: Sequence[Path], framework: str, registry: PluginRegistry, window: Window, steps: int | None
) -> ParsedLog:
    reader = LogReader(framework=framework, registry=registry, window=window, steps_asked=steps)
    files = [file for path in paths for file in (_files_of_ranks(path, reader) if os.path.isdir(path) else [path])]
    return parse_run(files, framework, registry, window, steps)


def _files_of_ranks(folder: Path, reader: LogReader) -> list[Path]:
    """Return the logs in a directory; without any, all files that are named like logs. Raise LogError."""
    found = reader.read(folder)
    if found.faults:
        raise LogError(*found.faults)
    files = [log.path for log in found.logs] or [file.path for file in found.passed_over]
    if not files:
        raise LogError(Fault(message="no logs found", file=str(folder), expected="a directory with one log per rank"))
    return files
