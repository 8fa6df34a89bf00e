"""The list of runs as text: one line per run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

import attrs
from rich.text import Text

import llmb
from llmb.cli import output
from llmb.cli.views.metrics import high_mfu_note
from llmb.cli.views.numbers import format_number, four_digits
from llmb.cli.views.results import STYLES
from llmb.cli.views.run_details import describe_age, is_stale
from llmb.cli.views.sweep import BEGIN_OF_ID, describe_differences
from llmb.cli.views.tables import GAP, Column, print_table

LONGEST_CAUSE = 60
"""Characters of a cause in the list. `llmb show` prints all of it."""

NAMED_RUNS = 3
"""The most runs that a note names."""


def print_run_list(runs: Sequence[llmb.RunResult]) -> None:
    """Print one line per run."""
    differences = describe_differences(runs)
    columns = [Column("run"), *([Column("sweep", wraps=18, optional=True)] if any(differences) else [])]
    columns += [Column("state"), Column("verdict"), Column("s/step", right=True)]
    columns += [Column("detail", wraps=14, optional=True)]
    columns += [Column(title, right=True, optional=True) for title in ("MFU %", "tokens/s", "created (UTC)")]
    rows = [_line(run, [each] if any(differences) else []) for run, each in zip(runs, differences, strict=True)]
    columns = [
        attrs.evolve(each, optional=each.optional or not any(row[at] for row in rows))
        for at, each in enumerate(columns)
    ]
    print_table(columns, _with_short_ids(columns, rows))
    _print_mfu_notes(runs)
    if stale := [run for run in runs if is_stale(run)]:
        updates = "updates it" if len(stale) == 1 else "updates them"
        output.print_prose(f"note: no process follows {llmb.counted(len(stale), 'run')}; `llmb attach` {updates}")


def _print_mfu_notes(runs: Iterable[llmb.RunResult]) -> None:
    """Print each note on an impossible MFU once, with the first runs that have it."""
    run_ids: dict[str, list[str]] = {}
    for run in runs:
        note = high_mfu_note(run.metrics, run.notes)
        if note and run.window_complete is not False:
            run_ids.setdefault(note.removeprefix("warning: "), []).append(run.run_id)
    for note, ids in run_ids.items():
        output.print_prose(f"note: {llmb.first_names(ids, NAMED_RUNS)}: {note}")


def _with_short_ids(
    columns: Sequence[Column], rows: Sequence[tuple[str | Text, ...]]
) -> Sequence[tuple[str | Text, ...]]:
    """Return rows whose ids leave room for the columns that are not optional, on a terminal."""
    console = output.console()
    needed = [
        max(len(each.title), *(len(row[at]) for row in rows))
        for at, each in enumerate(columns)
        if not each.optional and at
    ]
    room = console.width - sum(width + len(GAP) for width in needed)
    if not console.is_terminal or all(len(row[0]) <= room for row in rows):
        return rows
    known = llmb.find_runs().run_ids
    return [(_shorten_to_unique(str(row[0]), room, known), *row[1:]) for row in rows]


def _shorten_to_unique(run_id: str, room: int, known: Iterable[str]) -> str:
    """Return the beginning of a run id, with an ellipsis, that no other run id has. It may be longer than the room."""
    kept = max(room - 1, BEGIN_OF_ID)
    others = [other for other in known if other[:kept] == run_id[:kept] and other != run_id]
    while kept < len(run_id) and any(other.startswith(run_id[:kept]) for other in others):
        kept += 1
    return run_id if len(run_id) <= kept + 1 else f"{run_id[:kept]}…"


def _line(run: llmb.RunResult, differences: Sequence[str]) -> tuple[str | Text, ...]:
    metrics = run.metrics if run.window_complete is not False else None  # a list compares, so it omits partial metrics
    mfu = metrics.mfu if metrics else None
    return (
        run.run_id,
        *differences,
        Text(run.state, STYLES.get(run.state, "")),
        Text(run.verdict or "", STYLES.get(run.verdict or "", "")),
        four_digits(metrics.step_time_s) if metrics and metrics.step_time_s is not None else "",
        _cause(run) if run.ended else _progress(run),
        f"{100 * mfu:.2f}" if mfu is not None else "",
        format_number(metrics.tokens_per_s if metrics else None),
        (run.created or "").replace("T", " ").partition(".")[0].removesuffix("+00:00"),
    )


def _progress(run: llmb.RunResult) -> str:
    """Return a text on a run that has not ended: ``step 120 of 500, 3 h ago``, or ``updated 3 h ago``."""
    step = run.progress.step if run.progress else None
    if step is None:
        return f"updated {describe_age(run)}" if is_stale(run) else ""
    return ", ".join(filter(None, (f"step {step} of {run.steps_requested}", describe_age(run))))


def _cause(run: llmb.RunResult) -> str:
    """Return why a run ended without a result, shortened. A damaged record has a line of its own below the list."""
    if run.state == "completed" or is_damaged(run):
        return ""
    cause = run.failure.cause if run.failure else run.reason.partition("\n")[0]
    return textwrap.shorten(cause, LONGEST_CAUSE, placeholder=" ...")


def is_damaged(run: llmb.RunResult) -> bool:
    """Check whether the record of a run is damaged, so that the reason names its file."""
    return run.reason.startswith((run.directory, "damaged record"))
