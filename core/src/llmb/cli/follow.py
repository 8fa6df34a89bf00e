"""Follow the runs of a session: show their events, then print their results."""

from __future__ import annotations

from typing import NoReturn

import typer

import llmb
from llmb.cli import output
from llmb.cli.exit_codes import INTERRUPTED


def follow_runs(session: llmb.Session, *, as_json: bool, detach: bool = False) -> llmb.LlmbError | None:
    """Show events until all runs have ended or, with ``detach``, are submitted. Return the error that stopped some.

    Ctrl-C detaches: print how to attach again and exit. The runs continue.
    """
    from llmb.cli.views.progress import open_view

    try:
        with open_view() as view:
            for event in session.events(until="submitted" if detach else "ended"):
                view.show(event)
    except llmb.LlmbError as error:
        return error
    except KeyboardInterrupt:
        _detach_after_interrupt(session, as_json)
    return None


def _detach_after_interrupt(session: llmb.Session, as_json: bool) -> NoReturn:
    if as_json:
        print_runs(session, None, as_json=True)
    print_attach_command(session)
    raise typer.Exit(INTERRUPTED)


def print_attach_command(session: llmb.Session) -> None:
    """Print how to follow the runs that have not ended, if there are any."""
    unfinished = [result for result in session.results if not result.ended]
    if waiting := sum(result.state in ("planned", "preparing") for result in unfinished):
        output.print_progress(f"not submitted yet: {waiting} runs; they continue only while llmb follows them")
    if unfinished:
        output.print_progress(f"detached; follow with: llmb attach {' '.join(result.run_id for result in unfinished)}")


def print_runs(session: llmb.Session, error: llmb.LlmbError | None, *, as_json: bool) -> list[llmb.RunResult]:
    """Print all runs or, after an error, the runs that have ended and then the error. Return all results."""
    results = session.results
    sets = llmb.judge_sets(llmb.find_repeats(results))
    if as_json:
        errors = {"errors": output.error_documents(error)} if error else {}
        documents = {"runs": [result.as_dict() for result in results], "sets": [each.as_dict() for each in sets]}
        output.print_json(documents | errors)
        return results
    from llmb.cli.views.results import print_results

    print_results([result for result in results if result.ended or not error], sets)
    if error:
        output.print_error(error)
    return results
