"""The commands that start, follow and end runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llmb.cli.arguments import refuse_together
from llmb.cli.document import print_json
from llmb.cli.main import app, errors_of, tell
from llmb.values.errors import LlmbError

if TYPE_CHECKING:
    from llmb.drive.result import RunResult
    from llmb.drive.runs import Session
    from llmb.values.workload import Workload

Spec = Annotated[
    Path,
    typer.Argument(
        metavar="SPEC", help="The workload spec, a TOML file.", show_default=False, readable=False
    ),  # ours to say
]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a dotted key of the spec.")]
TargetName = Annotated[
    str | None, typer.Option("--target", metavar="NAME", help="Take [target] from the targets file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
WithCheck = Annotated[bool, typer.Option("--check", help="Exit with 3 where a verdict is fail.")]
Runs = Annotated[
    list[str], typer.Argument(metavar="RUN", help="Run ids, or unique prefixes of them.", show_default=False)
]
MaybeRuns = Annotated[
    list[str] | None,
    typer.Argument(metavar="RUN", help="Run ids or unique prefixes; all that have not ended where none is named."),
]


@app.command()
def run(
    spec: Spec,
    overrides: Set = None,
    target: TargetName = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done; touch nothing.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Return as soon as everything is submitted.")] = False,
    check: WithCheck = False,
    as_json: AsJson = False,
) -> None:
    """Run a workload: prepare, submit, follow, measure, record."""
    from llmb.api import load

    refuse_together({"--dry-run": dry_run, "--detach": detach})
    workload = load(spec, overrides=overrides or (), target=target)
    if dry_run:
        _dry_run(workload, as_json)
        return
    from llmb.cli.live import observer
    from llmb.drive.runs import start

    with observer() as watching:
        session = start(workload, observer=watching)
        error = _drive(session, as_json, detach)
    _print(session, as_json, error)
    _end(session, as_json, error, check=check, detach=detach)


@app.command()
def validate(spec: Spec, overrides: Set = None, target: TargetName = None, as_json: AsJson = False) -> None:
    """Check a spec: every fault in it at once, nothing touched."""
    from llmb.api import load
    from llmb.planning import plan
    from llmb.plugins.registry import PluginRegistry

    workload = load(spec, overrides=overrides or (), target=target)
    plan(workload, pool=PluginRegistry())
    _tell_notes(workload)
    if as_json:
        print_json({"file": workload.file, "runs": [each.run.name for each in workload.runs]})
    else:
        number = len(workload.runs)
        typer.echo(f"{spec}: {number} run{'s' if number > 1 else ''}, no fault")


@app.command()
def attach(runs: MaybeRuns = None, check: WithCheck = False, as_json: AsJson = False) -> None:
    """Follow runs to their end. It does not matter who started them, nor what became of that process."""
    from llmb.cli.live import observer
    from llmb.drive import runs as engine

    with observer() as watching:
        session = engine.attach(runs or None, observer=watching)
        error = _drive(session, as_json)
    if not session.results and not as_json:
        typer.echo("llmb: there is no run to follow; `llmb runs` lists all", err=True)
    _print(session, as_json, error)
    _end(session, as_json, error, check=check)


@app.command()
def cancel(runs: Runs, as_json: AsJson = False) -> None:
    """End these runs and no others, and wait until they have ended."""
    from llmb.cli.live import observer
    from llmb.drive import runs as engine

    with observer() as watching:
        session = engine.cancel(runs, observer=watching)
        error = _drive(session, as_json)
    _print(session, as_json, error)
    if error:
        raise typer.Exit(error.exit_code)


def _drive(session: Session, as_json: bool, detach: bool = False) -> LlmbError | None:
    """Drive to the end, and return what stood in the way; Ctrl-C detaches from what runs, and cancels nothing."""
    try:
        session.drive(detach=detach)
    except LlmbError as error:
        return error
    except KeyboardInterrupt:
        if as_json:
            _print(session, as_json)
        _tell_how_to_attach(session)
        raise typer.Exit(130) from None
    return None


def _tell_how_to_attach(session: Session) -> None:
    going = [result.run_id for result in session.results if not result.ended]
    if going:
        typer.echo(f"detached; go on with: llmb attach {' '.join(going)}", err=True)


def _end(
    session: Session, as_json: bool, error: LlmbError | None, *, check: bool = False, detach: bool = False
) -> None:
    if detach and not as_json and not error:
        _tell_how_to_attach(session)
    results = [result for result in session.results if result.ended or not (detach or error)]
    if status := worst_status(results, check=check, error=error):
        raise typer.Exit(status)


def worst_status(results: Iterable[RunResult], *, check: bool, error: LlmbError | None = None) -> int:
    """The exit status of several runs: 4 where a target refused one or cannot be reached, else 1 where one did not
    complete, else 2 where something else stood in the way of one, else 3 where a checked verdict is fail.
    """
    found = {error.exit_code} if error else set()
    for result in results:
        if result.refused:
            found.add(4)
        elif result.state != "completed":
            found.add(1)
        elif check and result.verdict == "fail":
            found.add(3)
    return next((status for status in (4, 1, 2, 3) if status in found), 0)


def _print(session: Session, as_json: bool, error: LlmbError | None = None) -> None:
    """All runs; where something stood in the way, those that have ended, and then what it was, as at any other time."""
    if as_json:
        errors = {"errors": errors_of(error)} if error else {}
        print_json({"runs": [each.as_dict() for each in session.results], **errors})
    else:
        from llmb.cli.results import print_results

        print_results(result for result in session.results if result.ended or not error)
        if error:
            tell(error)


def _tell_notes(workload: Workload) -> None:
    for note in workload.notes:
        typer.echo(f"llmb: {note}", err=True)


def _dry_run(workload: Workload, as_json: bool) -> None:
    from llmb.cli.dry_run import as_table, print_plan
    from llmb.planning import plan
    from llmb.plugins.registry import PluginRegistry

    planned = plan(workload, pool=PluginRegistry())
    if as_json:
        _tell_notes(workload)
        print_json({"runs": [as_table(each) for each in planned]})
    else:
        print_plan(planned, workload.notes)
