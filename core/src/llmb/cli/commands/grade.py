"""``llmb grade``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.completion import complete_recipe
from llmb.cli.exit_codes import FAILED, SLOWER
from llmb.cli.options import (
    AsJson,
    Dtype,
    Gpus,
    GpuType,
    Steps,
    Variant,
    WithCheck,
    log_paths,
    parse_window,
    print_open_verdicts,
    window_option,
    with_option_names,
)

Logs = Annotated[
    list[Path],
    typer.Argument(
        metavar="LOG...",
        help="Logs of the run's ranks, or a directory with one log per rank.",
        show_default=False,
        readable=False,  # llmb itself reports a file that cannot be read
    ),
]

Address = Annotated[
    str,
    typer.Option(
        "--recipe", metavar="ADDRESS", help="Recipe, as `llmb recipes` lists it.", autocompletion=complete_recipe
    ),
]


def grade(
    logs: Logs,
    recipe: Address,
    gpu_type: GpuType,
    dtype: Dtype,
    gpus: Gpus,
    variant: Variant = None,
    window: Annotated[str | None, window_option("the recipe's window")] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", metavar="X", min=0, help="Accepted slowdown, as a fraction.")
    ] = 0.05,
    steps: Steps = None,
    repeats: Annotated[bool, typer.Option("--repeats", help="Each LOG is a repeat of the run.")] = False,
    save: Annotated[
        bool, typer.Option("--save", help="Record the log as a run, for show, compare and report.")
    ] = False,
    check: WithCheck = False,
    as_json: AsJson = False,
) -> None:
    """Judge the log of a run against a published configuration."""
    from llmb.cli.views.choose_view import show_activity

    with with_option_names(), show_activity(f"reading {logs[0]}"):
        graded = llmb.grade(
            log_paths(logs),
            recipe=recipe,
            gpu_type=gpu_type,
            dtype=dtype,
            gpus=gpus,
            variant=variant,
            window=parse_window(window),
            tolerance=tolerance,
            steps=steps,
            repeats=repeats,
            save=save,
        )
    if as_json:
        output.print_json(graded.as_dict())
    else:
        from llmb.cli.views.grades import print_grade

        print_grade(graded, own_window=window is None)
    raise typer.Exit(_exit_code(graded, check=check))


def _exit_code(graded: llmb.Grade, *, check: bool) -> int:
    if graded.failed:
        return FAILED
    if not check:
        return 0
    print_open_verdicts([graded.verdict])
    return SLOWER if graded.verdict == "fail" else 0
