"""Recognition of logs by all installed frameworks, if the user names none, or one that finds no step."""

from __future__ import annotations

import os
import re
import shlex
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from pathlib import Path

import attrs

from llmb.logs.failures.signature_files import OF_EXCEPTION
from llmb.parsing.compressed import explain_unreadable, sample_unpacked, unpacked
from llmb.parsing.directories import ParsedPath
from llmb.parsing.file_filter import files_below, is_binary, is_named_like_a_log, sample
from llmb.parsing.parse_log import LogReader, ParsedLog
from llmb.plugins.find_plugins import plugin_names
from llmb.plugins.registry import PluginRegistry, warn_left_out
from llmb.values.errors import Fault, LogError, PluginError, PluginWarning, SpecError
from llmb.values.failure import UNKNOWN
from llmb.values.log_file_names import LogFiles
from llmb.values.types.check_arguments import check_arguments

TRIED_LOGS = 8
"""The most logs of a folder that are read with every other framework. Logs of one folder are rarely of several."""

_NUMBERS = re.compile(r"\d+")


@check_arguments
def recognise_framework(paths: Iterable[str | Path], *, registry: PluginRegistry | None = None) -> str:
    """Return the installed framework that finds most steps in the first of these logs that has steps.

    If no log has a step, return the first framework that explains a failure, or else the first one that finds one: that
    run failed before its first step. A path is a log or a directory. Of a directory, at most eight logs are read, first
    those whose names differ by more than numbers, and the last log of each name. Raise LogError if a path cannot be
    read or has no log. Raise SpecError if no installed framework finds a step or a failure, or for a pipe, which can be
    read only once.
    """
    registry = registry or PluginRegistry()
    names = [str(path) for path in paths]
    if not names:
        raise LogError("no log is named")
    read: list[Path] = []
    failed: list[ParsedLog] = []
    for name in names:
        for log in _first_logs(Path(name)):
            read.append(log)
            logs = _read_with_each(partial(_parse, log, registry), "", registry)
            if found := _longest(logs):
                return found.framework
            failed += (each for each in logs if each.failure)
    if failed:
        return min(failed, key=_is_unexplained).framework
    if not read:
        raise LogError(*(Fault(message="no logs found", file=name, expected="a directory with logs") for name in names))
    for name in names:
        _reject_unreadable(Path(name))
    installed = ", ".join(plugin_names("framework", registry.installed))
    message = f"no installed framework ({installed}) finds a step in {', '.join(map(_describe_read, names))}"
    raise SpecError(f"{message}; describe another one: `llmb new-plugin NAME --from {shlex.quote(str(read[0]))}`")


def _reject_unreadable(log: Path) -> None:
    """Raise LogError with the reason if no framework can read a log, for example because it is empty or damaged."""
    if os.path.isfile(log):
        with unpacked(log) as text:
            if reason := explain_unreadable(sample(text)):
                raise LogError(Fault(message=reason, file=str(log)))


def _describe_read(name: str) -> str:
    """Return the name of a path, and how many of its logs were read if it is a directory with more."""
    first = f"{TRIED_LOGS} logs of " if len(_first_logs(Path(name), TRIED_LOGS + 1)) > TRIED_LOGS else ""
    return first + name


def _first_logs(path: Path, most: int = TRIED_LOGS) -> list[Path]:
    """Return a log, or the first logs of a directory. Raise LogError if the path cannot be read."""
    if os.path.isdir(path):
        return _first_texts(filter(is_named_like_a_log, files_below(path, LogFiles())), most)
    if os.path.exists(path) and not os.path.isfile(path):
        raise SpecError(f"{path} can be read only once, because it is no file; name its framework (--framework NAME)")
    try:
        path.open("rb").close()
    except OSError as error:
        raise LogError(Fault(message=f"cannot be read: {error.strerror}", file=str(path))) from error
    return [path]


def _first_texts(logs: Iterable[Path], most: int = TRIED_LOGS) -> list[Path]:
    """Return the first logs that are text. A binary file has no steps, and takes long to read if it is large."""
    return [*islice(filter(_is_text, _different_first(logs)), most)]


def _is_text(log: Path) -> bool:
    """Check whether a file is text. A pipe is not, because it cannot be read again. A damaged file may be text."""
    try:
        return os.path.isfile(log) and not is_binary(sample_unpacked(log))
    except LogError:
        return True


def _different_first(logs: Iterable[Path]) -> list[Path]:
    """Sort the first and the last log of each name without its numbers before others of that name: a0, b0, a9, b9, a1.

    The log with the highest numbers may be that of the last rank, and the only one with steps.
    """
    of_name = defaultdict[str, list[Path]](list)
    for log in logs:
        of_name[_NUMBERS.sub("", str(log))].append(log)
    places: list[tuple[int, Path]] = []
    for same in of_name.values():
        first, *others = sorted(same, key=lambda log: [int(number) for number in _NUMBERS.findall(str(log))])
        places += enumerate([first, *others[-1:], *others[:-1]])
    return [log for _, log in sorted(places)]


def read_with_others(read: Callable[[str], ParsedLog], framework: str, registry: PluginRegistry) -> ParsedLog | None:
    """Read with each other installed framework. Return the log that has most steps, or None if none has a step.

    ``read`` reads with the framework that it receives. Warn about plugins that are broken.
    """
    return _longest(_read_with_each(read, framework, registry))


def _read_with_each(read: Callable[[str], ParsedLog], framework: str, registry: PluginRegistry) -> list[ParsedLog]:
    """Read with each installed framework except ``framework``. Leave out those that cannot read."""
    logs = list[ParsedLog]()
    for name in plugin_names("framework", registry.installed):
        if name == framework:
            continue
        try:
            logs.append(read(name))
        except PluginError as error:
            warn_left_out(error)
        except LogError:  # the log is that of another framework
            continue
    return logs


def _is_unexplained(log: ParsedLog) -> bool:
    """Check whether the cause of a failure is unknown or only the name of an exception."""
    return log.failure is None or log.failure.cause.startswith((UNKNOWN, OF_EXCEPTION))


def _longest(logs: Iterable[ParsedLog]) -> ParsedLog | None:
    return max((log for log in logs if log.steps), key=lambda log: len(log.steps), default=None)


def with_writer(found: ParsedPath, framework: str, registry: PluginRegistry) -> ParsedPath:
    """Return the logs at a path with the installed framework that wrote them, if they have no step of ``framework``.

    Ignore broken plugins.
    """
    if found.has_steps or found.faults:
        return found
    logs = _first_texts(each.path for each in found.logs or found.passed_over)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)
        for log in logs:
            if other := read_with_others(partial(_parse, log, registry), framework, registry):
                return attrs.evolve(found, written_by=other.framework)
    return found


def _parse(log: Path, registry: PluginRegistry, framework: str) -> ParsedLog:
    return LogReader(framework=framework, registry=registry).read([log])
