"""Parsing of a path: one log, or all logs of a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import attrs

from llmb.parsing.compressed import is_tar, sample_unpacked
from llmb.parsing.file_filter import files_below, is_binary, is_named_as, is_named_like_a_log, sample
from llmb.parsing.parse_log import CHECK_FRAMEWORK, LogReader, ParsedLog, explain_missing_steps
from llmb.values.errors import Fault, LogError, PluginError
from llmb.values.log_file_names import LogFiles


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
        return f"no file with {framework} steps found{CHECK_FRAMEWORK}" if is_folder else self.logs[0].no_step

    @property
    def has_steps(self) -> bool:
        """True if a log has a step of the framework."""
        return any(log.no_step is None for log in self.logs)


def read_path(path: Path, reader: LogReader) -> ParsedPath:
    """Read a log, or the logs in a directory: docs/parse.md lists which files of a directory are logs."""
    found = list(_read_files(path, reader))
    return ParsedPath(
        path=path,
        logs=tuple(each for each in found if isinstance(each, ParsedLog)),
        passed_over=tuple(each for each in found if isinstance(each, PassedOver)),
        faults=tuple(each for each in found if isinstance(each, Fault)),
    )


def _read_files(path: Path, reader: LogReader) -> Iterator[ParsedLog | PassedOver | Fault]:
    known = reader.registry.framework(reader.framework).log_files
    try:
        files = list(files_below(path, known)) if os.path.isdir(path) else [path]
    except LogError as error:
        yield from error.faults
        return
    for each in files:
        try:
            found = reader.read([each]) if each is path else _read_if_log(each, reader, known)
        except (LogError, PluginError) as error:
            yield from error.faults
        else:
            if found:
                yield found


def _read_if_log(path: Path, reader: LogReader, known: LogFiles) -> ParsedLog | PassedOver | None:
    if is_named_as(path, known.training):  # a log even without a step
        return reader.read([path])
    like_a_log = is_named_like_a_log(path)
    part = sample_unpacked(path) if like_a_log else sample(path)
    log = reader.read([path]) if part and not (is_binary(part) or is_tar(part)) else None
    if log and (log.no_step is None or (like_a_log and log.failure)):
        return log
    reason = log.no_step if log else explain_missing_steps(part, reader.framework)
    return PassedOver(path=path, reason=reason) if like_a_log and reason else None
