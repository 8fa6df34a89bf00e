"""``llmb doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.completion import complete_target
from llmb.cli.options import AsJson, OptionsError, Overrides
from llmb.cli.spec_in_remedies import OPTIONS, SpecArguments

MARKS = {True: ("ok", "green"), False: ("failed", "red"), None: ("-", "")}
"""The text and style for each value of ``DoctorCheck.ok``. A check without a result is no failure."""


def doctor(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="A target of the targets file. [default: the spec's, or this machine]",
            autocompletion=complete_target,
        ),
    ] = None,
    spec: Annotated[
        str | None,
        typer.Argument(metavar="SPEC", help="A workload spec: check whether its runs would start on the target."),
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Check a target, or whether the runs of a spec would start there."""
    from llmb.cli.views.choose_view import show_activity

    if target is not None and target.endswith(".toml") and not (spec or "").endswith(".toml"):
        target, spec = spec, target
    if overrides and spec is None:
        raise OptionsError("--set requires a SPEC")
    with show_activity(f"checking {spec or target or 'this machine'}"):
        checks = llmb.doctor(target) if spec is None else _check_spec(SpecArguments(spec, target, overrides or ()))
    if as_json:
        import attrs

        output.print_json({"checks": [attrs.asdict(check) for check in checks]})
    else:
        _print_checks(checks)
    raise typer.Exit(1 if any(check.ok is False for check in checks) else 0)


def _check_spec(arguments: SpecArguments) -> list[llmb.DoctorCheck]:
    """Return the checks of a spec, which name this spec in their remedies."""
    import attrs

    with arguments.named_in_errors(OPTIONS | {"target": "TARGET"}):
        checks = llmb.doctor(workload=arguments.load())
    return [
        attrs.evolve(each, detail=arguments.name_in(each.detail), remedy=arguments.name_in(each.remedy))
        for each in checks
    ]


def _print_checks(checks: Sequence[llmb.DoctorCheck]) -> None:
    """Print one line per check, and the remedy below a check that failed."""
    from rich.text import Text

    from llmb.cli.views.tables import Cell, Column, print_table

    rows: list[tuple[Cell, ...]] = []
    for check in checks:
        rows.append((Text(*MARKS[check.ok]), check.name, check.detail))
        if check.remedy and not check.ok:
            rows.append(("", "", Text(f"remedy: {check.remedy}", "yellow")))
    print_table([Column(), Column(), Column(wraps=30)], rows)
