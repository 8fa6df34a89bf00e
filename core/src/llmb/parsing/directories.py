"""Parsing of a path: one log, or all logs of a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from llmb.parsing.compressed import beginning_unpacked
from llmb.parsing.file_filter import beginning, files_below, is_binary, is_named_like_a_log, is_training_log
from llmb.parsing.parse_log import ParsedLog, explain_missing_steps, parse_run
from llmb.plugins.registry import PluginRegistry
from llmb.values.errors import Fault, LogError, PluginError
from llmb.values.log_files import LogFiles
from llmb.values.recipe import Window
from llmb.values.run import Run


@attrs.frozen(kw_only=True)
class PassedOver:
    """A file of a directory that is named like a log, and the reason why it is not a log of the framework."""

    path: Path
    reason: str


@attrs.frozen(kw_only=True)
class ParsedPath:
    """The logs at a path as the user named it, the files that were passed over, and the errors of unreadable files.

    ``written_by`` is another installed framework that has steps in them, if the framework of the user has none.
    """

    path: Path
    logs: tuple[ParsedLog, ...]
    passed_over: tuple[PassedOver, ...]
    faults: tuple[Fault, ...]
    written_by: str | None = None

    def explain_missing_steps(self, framework: str) -> str | None:
        """Return the reason why the path has no step of the framework. Return None if it has one, or an error."""
        if self.has_steps or self.faults:
            return None
        is_folder, other = os.path.isdir(self.path), self.written_by
        if other:
            what = "these are logs" if is_folder else "this is a log"
            return f"no {framework} steps found; {what} of {other}: use --framework {other}, or a recipe of {other}"
        return f"no file with {framework} steps found; check --framework" if is_folder else self.logs[0].no_step

    @property
    def has_steps(self) -> bool:
        """True if a log has a step of the framework."""
        return any(log.no_step is None for log in self.logs)


@attrs.frozen(kw_only=True)
class LogReader:
    """Reader of one framework's logs.

    ``steps_asked`` is the number of steps in a complete log, and ``run`` the run in a log with several, if the user
    sets them. ``known_run`` is that of `parse_run`.
    """

    framework: str
    registry: PluginRegistry
    window: Window | None = None
    steps_asked: int | None = None
    run: int | None = None
    known_run: Run[Any] | None = None

    def read(self, path: Path) -> ParsedPath:
        """Read a log, or the logs in a directory: docs/parse.md lists which files of a directory are logs."""
        found = list(self._found(path))
        return ParsedPath(
            path=path,
            logs=tuple(each for each in found if isinstance(each, ParsedLog)),
            passed_over=tuple(each for each in found if isinstance(each, PassedOver)),
            faults=tuple(each for each in found if isinstance(each, Fault)),
        )

    def _found(self, path: Path) -> Iterator[ParsedLog | PassedOver | Fault]:
        known = self.registry.framework(self.framework).log_files
        try:
            files = list(files_below(path, known)) if os.path.isdir(path) else [path]
        except LogError as error:
            yield from error.faults
            return
        for each in files:
            try:
                found = self._parse(each) if each is path else self._parse_if_log(each, known)
            except (LogError, PluginError) as error:
                yield from error.faults
            else:
                if found:
                    yield found

    def _parse(self, path: Path) -> ParsedLog:
        return parse_run([path], self.framework, self.registry, self.window, self.steps_asked, self.run, self.known_run)

    def _parse_if_log(self, path: Path, known: LogFiles) -> ParsedLog | PassedOver | None:
        if is_training_log(path, known):
            return self._parse(path)
        like_a_log = is_named_like_a_log(path)
        begin = beginning_unpacked(path) if like_a_log else beginning(path)
        log = self._parse(path) if begin and not is_binary(begin) else None
        if log and (log.no_step is None or (like_a_log and log.failure)):
            return log
        reason = log.no_step if log else explain_missing_steps(begin, self.framework)
        return PassedOver(path=path, reason=reason) if like_a_log and reason else None
