"""``llmb doctor``."""

from __future__ import annotations

from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.options import AsJson


def doctor(
    target: Annotated[
        str | None,
        typer.Argument(metavar="TARGET", help="A target of the targets file. [default: this machine]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check whether a target is ready, and how to fix what is not."""
    checks = llmb.doctor(target)
    if as_json:
        import attrs

        # a check that depends on the run (None) is no failure
        output.print_json({"checks": [attrs.asdict(check) | {"ok": check.ok is not False} for check in checks]})
    else:
        from llmb.cli.views.doctor import print_checks

        print_checks(checks)
    raise typer.Exit(1 if any(check.ok is False for check in checks) else 0)
