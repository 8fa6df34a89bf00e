"""``llmb compare``."""

from __future__ import annotations

from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.exit_codes import FAILED, SLOWER
from llmb.cli.options import AsJson, OptionsError, runs_argument

TOLERANCE = 0.02
"""The slowdown that --check accepts by default, as a fraction."""


def compare(
    a: Annotated[
        str,
        runs_argument(
            "A run, several runs joined by commas, or filters in braces such as '{image=*25.12* since=7d}'.", "A"
        ),
    ],
    b: Annotated[str, runs_argument("The same, or the word baseline.", "B")],
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 3 if B is slower than A by more than the tolerance.")
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance", metavar="X", min=0, help="Slowdown that --check accepts. [default: 0.02]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare recorded runs: step times, noise and differences."""
    if tolerance is not None and not check:
        raise OptionsError("--tolerance requires --check")
    accepted = TOLERANCE if tolerance is None else tolerance
    if not accepted < 1:
        raise OptionsError(f"--tolerance: {accepted:g} is out of range; expected a fraction such as {TOLERANCE}")
    found = llmb.compare(a, b)
    if as_json:
        output.print_json(found.as_dict())
    else:
        from llmb.cli.views.comparisons import print_comparison

        print_comparison(found)
    if not found.points:
        raise typer.Exit(FAILED)
    if check and any(point.call == "slower" and point.change > accepted for point in found.points):
        raise typer.Exit(SLOWER)
