"""Arguments and options that several commands share, and those of `llmb` itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import llmb
from llmb.cli import output
from llmb.cli.completion import complete_run, complete_runs_or_filter, complete_target

Quiet = Annotated[bool, typer.Option("--quiet", help="Print no progress. Also valid after a command.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Print the commands that run on hosts. Also valid after a command.")
]
GLOBAL_OPTIONS = ("--quiet", "--verbose")
"""Options that may be anywhere on the command line."""

Spec = Annotated[
    Path,
    typer.Argument(
        metavar="SPEC",
        help="Workload spec: a TOML file.",
        show_default=False,
        readable=False,  # llmb itself reports a file that cannot be read
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a dotted key of the spec. May be repeated."),
]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target", metavar="NAME", help="Use this target of the targets file.", autocompletion=complete_target
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
WithCheck = Annotated[bool, typer.Option("--check", help="Exit with 3 if a verdict is fail.")]
GpuType = Annotated[str, typer.Option("--gpu-type", metavar="T", help="GPU type, such as h100.")]
Dtype = Annotated[str, typer.Option("--dtype", metavar="D", help="Data type, such as bf16.")]
Gpus = Annotated[int, typer.Option("--gpus", metavar="N", help="Number of GPUs.")]
Variant = Annotated[
    str | None, typer.Option("--variant", metavar="V", help="One of several configurations. [default: the publisher's]")
]

LIBRARY_ARGUMENTS = {
    **{name: f"--{name.replace('_', '-')}" for name in ("gpu_type", "dtype", "gpus", "variant", "framework", "recipe")},
    "step_time_s": "--step-time",
    "tflops_per_gpu": "--tflops-per-gpu",
    **dict.fromkeys(("tolerance", "measure.tolerance"), "--tolerance"),
    "measure.window": "--window",
}
"""Arguments of the library, and keys of a run that is recorded, as errors name them, with their options."""

Steps = Annotated[int | None, typer.Option("--steps", metavar="N", min=1, help="Number of steps in a complete log.")]
OneRun = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN", help="Run id or unique prefix. [default: the newest run]", autocompletion=complete_run
    ),
]


def global_options_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the options of `llmb` itself before the command."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    found = [each for each in arguments[:end] if each in GLOBAL_OPTIONS]
    return [*found, *(each for each in arguments[:end] if each not in GLOBAL_OPTIONS), *arguments[end:]]


def window_option(default: str) -> Any:
    """Return the option --window. ``default`` describes its default in the help."""
    return typer.Option("--window", metavar="last|35:44", help=f"Steps of the mean. [default: {default}]")


def runs_argument(description: str, metavar: str = "RUN...") -> Any:
    """Return an argument that selects runs by ids, prefixes of ids, or filters in braces."""
    return typer.Argument(metavar=metavar, help=description, show_default=False, autocompletion=complete_runs_or_filter)


def log_paths(logs: Sequence[Path]) -> list[Path]:
    """Return the paths of logs on the command line, on which ``-`` is standard input."""
    return [Path("/dev/stdin") if str(each) == "-" else each for each in logs]


class OptionsError(typer.BadParameter):
    """Options that are invalid together, although each is valid alone."""

    def format_message(self) -> str:
        """Return the message alone, without the words "Invalid value"."""
        return self.message


def find_run_or_newest(run: str | None) -> llmb.RunResult:
    """Return the run of an id. Without an id, return the newest run, and print which run that is. Raise RecordError."""
    if run is not None:
        if "=" in run:
            listing = f"llmb runs {shlex.join(run.strip('{}').split())}"
            raise llmb.RecordError(f"expected one run instead of filters; `{listing}` lists the runs that match")
        return llmb.find_run(run)
    newest = llmb.find_runs(limit=1).run_ids
    if not newest:
        raise llmb.RecordError(f"no runs in {llmb.home_folder()}; `llmb run SPEC` starts some")
    output.print_message(f"the newest run is {newest[0]}")
    return llmb.find_run(newest[0])


@contextmanager
def with_option_names() -> Iterator[None]:
    """Raise an error of the library with the name of the option instead of the argument's."""
    import attrs

    try:
        yield
    except llmb.LlmbError as error:
        named = [
            fault if fault.file else attrs.evolve(fault, key=LIBRARY_ARGUMENTS.get(fault.key or "", fault.key))
            for fault in error.faults
        ]
        raise type(error)(*named) from error


def print_ignored_options(options: Mapping[str, bool], reason: str) -> None:
    """Print a note for each option that is given although it has no effect. ``reason`` is the end of the note."""
    for name, is_given in options.items():
        if is_given:
            output.print_message(f"{name} has no effect {reason}")


def print_open_verdicts(verdicts: Sequence[llmb.Verdict | None]) -> None:
    """Print what exit code 0 means with --check, if a verdict is neither pass nor fail."""
    undecided = [verdict for verdict in verdicts if verdict not in ("pass", "fail")]
    if not undecided:
        return
    if len(verdicts) > 1:
        what = f"{len(undecided)} of {len(verdicts)} verdicts are missing or undecided"
    else:
        what = "the verdict is undecided" if undecided[0] else "there is no verdict"
    output.print_message(f"--check: {what}; exit code 0 means only that no verdict is fail")


def reject_combination(options: Mapping[str, bool]) -> None:
    """Raise OptionsError if more than one of these options is given, because llmb would ignore the others."""
    given = [name for name, is_given in options.items() if is_given]
    if len(given) > 1:
        raise OptionsError(f"{' and '.join(given)} cannot be combined")


def parse_window(text: str | None) -> llmb.Window | None:
    """Return the value of --window, or None if it is not set. Raise BadParameter if it is invalid."""
    if text is None:
        return None
    if text == "last":
        return "last"
    if found := re.fullmatch(r"(\d{1,99}):(\d{1,99})", text):  # Python reads no number of 5,000 digits
        first, last = map(int, found.groups())
        if first <= last:
            return first, last
    raise typer.BadParameter(f"{text!r}; expected last, or FIRST:LAST such as 35:44", param_hint="--window")
