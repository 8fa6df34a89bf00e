"""Follow the runs of a session: show their events, then print their results."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Literal, NoReturn

import typer

import llmb
from llmb.cli import output
from llmb.cli.exit_codes import INTERRUPTED, combined_exit_code
from llmb.cli.options import print_open_verdicts

NAMED_RUNS = 16
"""Runs that a message or the attach command names. The ids of more runs would push the table from the screen."""

Action = Literal["starting", "following", "cancelling"]
"""What a command does with the runs of a session."""


@contextmanager
def open_session(open_it: Callable[[Callable[[str], object]], llmb.Session]) -> Iterator[llmb.Session]:
    """Open a session, and close it at the end of the block.

    ``open_it`` receives a function that shows what llmb is doing meanwhile.
    """
    from llmb.cli.views.choose_view import open_view

    with open_view() as view:
        session = open_it(view.show_activity)
    with session:
        yield session


def follow_runs(
    session: llmb.Session, action: Action, *, as_json: bool, detach: bool = False, ended: Collection[str] = ()
) -> llmb.LlmbError | None:
    """Show events until all runs have ended or, with ``detach``, are submitted. Return the error that stopped some.

    The runs ``ended`` have no events, because they ended before. Ctrl-C detaches: print how to attach again and exit.
    The runs continue.
    """
    from llmb.cli.views.choose_view import open_view

    try:
        followed = [run_id for run_id in session.run_ids if run_id not in ended]
        with open_view() as view:
            view.add_runs(followed)
            if followed:
                view.show_activity(f"{action} {llmb.counted(len(followed), 'run')}")
            for event in session.events(until="submitted" if detach else "ended"):
                view.show(event)
    except llmb.LlmbError as error:
        return error
    except KeyboardInterrupt:
        _detach_after_interrupt(session, action, as_json)
    return None


def _detach_after_interrupt(session: llmb.Session, action: Action, as_json: bool) -> NoReturn:
    """Detach, print how to attach again as the last text, and exit. A second Ctrl-C only ends the wait for hosts."""
    with suppress(KeyboardInterrupt):
        session.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output.end_interrupted_line()
    if as_json:
        print_runs(session, None, as_json=True)
        output.flush()
    print_attach_command(session, action)
    raise typer.Exit(INTERRUPTED)


def print_attach_command(session: llmb.Session, action: Action) -> None:
    """Print how to follow the runs that have not ended, if there are any."""
    unfinished = [result for result in session.results if not result.ended]
    waiting = sum(result.state in ("planned", "preparing") for result in unfinished)
    if waiting and action != "cancelling":
        runs = "1 run; it continues" if waiting == 1 else f"{waiting} runs; they continue"
        output.print_progress(f"not submitted yet: {runs} only while llmb follows {'it' if waiting == 1 else 'them'}")
    if unfinished:
        purpose = "the cancellation may be incomplete; complete it" if action == "cancelling" else "follow"
        output.print_progress(f"detached; {purpose} with: llmb attach {_attach_arguments(unfinished)}")


def _attach_arguments(runs: Sequence[llmb.RunResult]) -> str:
    """Return the ids of these runs or, if they are many, filters by the times when they were recorded, if known."""
    times = [run.created for run in runs if run.created]
    if len(runs) <= NAMED_RUNS or not times:
        return " ".join(run.run_id for run in runs)
    created = sorted(map(datetime.fromisoformat, times))
    limits = created[0], created[-1] + timedelta(milliseconds=1)
    since, until = (each.isoformat(timespec="milliseconds").removesuffix("+00:00") for each in limits)
    return f"'{{since={since} until={until}}}'"


def exit_with_verdicts(
    results: Sequence[llmb.RunResult], sets: Sequence[llmb.RepeatSet], error: llmb.LlmbError | None
) -> NoReturn:
    """Exit with the code of these runs and, with --check, of the verdicts on ``sets``. Name verdicts that are open."""
    exit_code = combined_exit_code(results, sets=sets, error=error)
    if exit_code == 0:
        print_open_verdicts([each.verdict for each in sets])
    raise typer.Exit(exit_code)


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
