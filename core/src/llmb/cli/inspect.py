"""The commands that tell what is there."""

from __future__ import annotations

from typing import Annotated

import typer

from llmb.cli.document import print_json
from llmb.cli.main import app
from llmb.cli.run import AsJson


@app.command()
def plugins(as_json: AsJson = False) -> None:
    """List the installed plugins, and what is wrong with one."""
    from llmb.plugins.list import list_plugins

    found = list_plugins()
    if as_json:
        print_json({"plugins": [each.as_dict() for each in found]})
        return
    from llmb.cli.results import print_plugins

    print_plugins(found)


@app.command()
def doctor(
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="A target of the targets file; else this machine.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look at a target: what is there, what is missing, what to do. Exits with 1 where something is missing."""
    import attrs

    from llmb import doctor_checks

    checks = doctor_checks.doctor(target)
    if as_json:
        # for programs, ok is true or false: what depends on the run is not wrong
        print_json({"checks": [attrs.asdict(check) | {"ok": check.ok is not False} for check in checks]})
    else:
        from llmb.cli.results import print_checks

        print_checks(checks)
    raise typer.Exit(0 if all(check.ok is not False for check in checks) else 1)
