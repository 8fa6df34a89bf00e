"""Standard output, standard error and files: everything that ``llmb`` prints or writes on request goes through here."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import typer

import llmb
from llmb.cli.exit_codes import INVALID_INPUT, KILLED_BY_SIGPIPE

if TYPE_CHECKING:
    from rich.console import Console

STANDARD_OUTPUT = Path("-")
"""The name of an output file that means standard output."""

NO_BREAK = "\N{NO-BREAK SPACE}"

BELOW = "\n  "
"""The beginning of a line that belongs to the message before it, such as an excerpt of a log."""


def print_text(text: str, *, newline: bool = True) -> None:
    """Print text on standard output: as it is into a pipe or a file, printable on a terminal."""
    text = llmb.printable_text(text) if stdout().isatty() else text
    typer.echo(text, file=stdout(), nl=newline, color=True)  # without this argument, echo changes text for a pipe


def print_prose(text: str, *, begin: str = "") -> None:
    """Print sentences on standard output, each line of which begins with ``begin``.

    A terminal breaks them between words. Into a pipe or a file they are one line.
    """
    for line in _lines_of_prose(text, terminal_width(), len(begin)):
        print_text(f"{begin}{line}")


def _lines_of_prose(text: str, width: int | None, indent: int) -> list[str]:
    line = llmb.printable_line(text)
    return [line] if width is None else break_prose(line, width - indent) or [line]


def break_prose(text: str, width: int) -> list[str]:
    """Break text between words, but not between a number and its unit.

    A command in backquotes stays on one line, however long, so that it can be copied.
    """
    import re
    import textwrap

    text = re.sub(r"`[^`]+`|[0-9] (?:%|(?:s|x|GB)\b)", lambda found: found[0].replace(" ", NO_BREAK), text)
    lines = textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False)
    return [line.replace(NO_BREAK, " ") for line in lines]


def terminal_width(*, stderr: bool = False) -> int | None:
    """Return the number of columns of the terminal, or None if standard output or error is a pipe or a file."""
    stream = sys.stderr if stderr else stdout()
    return console(stderr=stderr).width if stream.isatty() else None


def print_json(document: Any) -> None:
    """Print one indented JSON document on standard output."""
    import json  # only for --json

    typer.echo(json.dumps(document, indent=2), file=stdout())


def print_json_stream(document: Mapping[str, Any], name: str, items: Iterable[Any]) -> None:
    """Print one JSON document that may be large: ``document``, and as its last key ``name`` a list of the items.

    Each item is printed as soon as it is made, in one line.
    """
    import json  # only for --json

    begin = json.dumps(document, indent=2).removesuffix("\n}")
    print_text(f"{begin},\n  {json.dumps(name)}: [", newline=False)
    before = "\n    "
    for item in items:
        print_text(before + json.dumps(item, separators=(",", ":")), newline=False)
        before = ",\n    "
    print_text("\n  ]\n}")


def write_file(file: Path, content: str | bytes) -> None:
    """Write a file completely or not at all, and print its name, or write to `STANDARD_OUTPUT`. Raise LlmbError."""
    if file == STANDARD_OUTPUT:
        if isinstance(content, str):
            print_text(content, newline=False)
        elif stdout().isatty():
            raise llmb.LlmbError("cannot write binary data to a terminal; name a file, or redirect the output")
        else:
            stdout().buffer.write(content)
        return
    data = content.encode() if isinstance(content, str) else content
    try:
        if file.exists() and not file.is_file():  # a device or a pipe, which must not be replaced
            file.write_bytes(data)
        else:
            llmb.write_atomically(file, data)
    except OSError as error:
        raise llmb.LlmbError(f"cannot write {file}: {error.strerror}") from error
    print_message(f"wrote {file}")


def print_message(text: str) -> None:
    """Print a line on standard error that begins with ``llmb:``, and the lines that belong to it: those of `BELOW`.

    A terminal breaks the first line between words. The lines below it may be those of a log.
    """
    for line in message_lines(text, terminal_width(stderr=True)):
        print_progress(line)


def message_lines(text: str, width: int | None) -> list[str]:
    """Return the lines that `print_message` prints. Without ``width``, no line is broken."""
    first, *below = text.split(BELOW)
    begin, indent = "llmb: ", BELOW[1:]
    broken = _lines_of_prose(first, width, len(begin))
    lines = [f"{begin}{broken[0]}", *(f"{indent}{each}" for each in (*broken[1:], *below))]
    return [llmb.printable_line(line) for line in lines]


def print_progress(text: str) -> None:
    """Print a line on standard error."""
    typer.echo(llmb.printable_line(text), err=True)


def end_interrupted_line() -> None:
    """Begin a new line after the ^C that a terminal prints at Ctrl-C."""
    if sys.stderr.isatty():
        print_progress("")


def print_error(error: llmb.LlmbError) -> None:
    """Print an error on standard error, one line for each problem that it lists."""
    for fault in error.faults:
        print_message(str(fault))


def error_documents(error: llmb.LlmbError) -> list[dict[str, str | None]]:
    """Return the problems that an error lists, as ``--json`` prints them."""
    return [
        {
            "message": fault.message,
            "file": fault.file,
            "key": fault.key,
            "expected": "\n".join(filter(None, (fault.expected, fault.lines))) or None,
            "nearest": fault.nearest,
        }
        for fault in error.faults
    ]


quiet: ContextVar[bool] = ContextVar("quiet", default=False)
"""True if the user wants to see results and errors only, and no progress."""


def print_host_commands() -> None:
    """Print each command that runs on a host from now on, without secrets."""
    import logging  # only for --verbose

    class Printer(logging.Handler):
        """Prints messages on standard error."""

        def emit(self, record: logging.LogRecord) -> None:
            for line in llmb.mask_secrets(record.getMessage()).splitlines():
                print_progress(line)

    logger = logging.getLogger("llmb.hosts")
    logger.setLevel(logging.DEBUG)
    logger.handlers[:] = [Printer()]
    logger.propagate = False


def console(*, stderr: bool = False) -> Console:
    """Return a console for styled text, which does not highlight numbers and paths on its own."""
    from llmb.cli.clean_console import CleanConsole  # only for output in colour

    return CleanConsole(file=sys.stderr if stderr else stdout(), highlight=False, markup=False, emoji=False)


class OutputLostError(Exception):
    """Output could not be written. Without arguments: the reader closed the pipe, which is not an error.

    This class is not an OSError, because typer and rich handle some OSErrors themselves, with other exit codes.
    """

    @property
    def exit_code(self) -> int:
        """2 if the output cannot be written, 141 if the reader closed the pipe."""
        return INVALID_INPUT if self.args else KILLED_BY_SIGPIPE


class _Stream(io.FileIO):
    """A stream that raises OutputLostError once and drops all later writes, such as Python's flush at exit."""

    def __init__(self, descriptor: int, title: str) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._title = title
        self._lost = False

    def write(self, data: Any, /) -> int:
        """Write any bytes-like object. Raise OutputLostError if that fails."""
        if self._lost:
            return len(data)
        try:
            return super().write(data)
        except BrokenPipeError:
            self._lost = True
            raise OutputLostError from None
        except OSError as error:
            self._lost = True
            is_closed = error.errno == errno.EBADF  # not open for writing
            problem = f"{self._title} is closed" if is_closed else f"cannot write {self._title}: {error.strerror}"
            raise OutputLostError(problem) from None


def watch_streams() -> None:
    """Make failed writes raise OutputLostError. Leave streams that a caller replaced, such as a test's, as they are.

    Standard output gets a descriptor of its own. Other programs and C code write to standard error instead, so that a
    plugin cannot write into a JSON document. Standard input that is closed becomes an empty one.
    """
    if sys.stdin is None:  # else the new descriptor of standard output would become standard input
        os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)
    if sys.stdout is None:  # it was closed before the program started
        unwritable = _Stream(os.open(os.devnull, os.O_RDONLY), "standard output")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(unwritable), encoding="utf-8")
    if sys.stderr is None:  # the same; a program that closes standard error wants no messages
        nowhere = _Stream(os.open(os.devnull, os.O_WRONLY), "standard error")
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(nowhere), encoding="utf-8")
    for name, title in (("stdout", "standard output"), ("stderr", "standard error")):
        stream = getattr(sys, name)
        if stream and stream is getattr(sys, f"__{name}__"):
            descriptor = _private_stdout() if name == "stdout" else stream.fileno()
            setattr(sys, name, _watched(stream, descriptor, title))
            if name == "stdout":
                _own_stdout.append(sys.stdout)


_own_stdout: list[TextIO] = []
"""The standard output that `watch_streams` opened. Empty in a process of another program, such as a test."""


def stdout() -> TextIO:
    """Return the stream for the output of llmb. Other code prints on ``sys.stdout``."""
    return _own_stdout[0] if _own_stdout else sys.stdout


def reserve_stdout() -> None:
    """Make other code print on standard error from now on, such as a thread of a plugin whose hook has returned."""
    if _own_stdout:
        sys.stdout = cast("TextIO", _StandardError())


class _StandardError:
    """A replacement of ``sys.stdout`` that writes to the present ``sys.stderr``, which the live view replaces."""

    def close(self) -> None:
        """Close nothing: the stream is llmb's."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def _private_stdout() -> int:
    """Return a new descriptor of standard output, and make descriptor 1 one of standard error, if there is one."""
    descriptor = os.dup(1)
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    return descriptor


def flush() -> None:
    """Write buffered output. Raise OutputLostError if that fails."""
    if stdout():
        stdout().flush()


def _watched(stream: io.TextIOWrapper, descriptor: int, title: str) -> io.TextIOWrapper:
    can_fail = stream.errors == "strict" or stream.encoding.lower() != "utf-8"  # at an undecodable name, or at "é"
    return io.TextIOWrapper(
        io.BufferedWriter(_Stream(descriptor, title)),
        encoding=stream.encoding,
        errors="backslashreplace" if can_fail else stream.errors,
        line_buffering=stream.line_buffering,
    )
