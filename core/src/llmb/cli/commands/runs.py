"""``llmb runs``."""

from __future__ import annotations

from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.completion import complete_filter
from llmb.cli.options import AsJson, reject_combination

NEWEST = 50
"""Runs that the list has by default."""

Filters = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILTER]...",
        help="key=value: recipe, image, target (with *), gpu_type, dtype, gpus (64 or 64..512), sweep (with *: a swept "
        "key=value), state, verdict, since, until (7d, or 2026-11-01 in UTC). A comma means or, key!=value excludes "
        "runs; all filters must match.",
        show_default=False,
        autocompletion=complete_filter,
    ),
]


def runs(
    filters: Filters = None,
    sort: Annotated[
        str, typer.Option("--sort", metavar="KEY", help="Sort by created, step_time, ratio, mfu or gpus.")
    ] = "created",
    reverse: Annotated[bool, typer.Option("--reverse", help="Reverse the order.")] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="List at most N runs. [default: 50, or all]")
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="List all runs.")] = False,
    ids: Annotated[bool, typer.Option("--ids", help="Print only run ids, all of them unless --limit is set.")] = False,
    rescan: Annotated[bool, typer.Option("--rescan", help="Read every record again.")] = False,
    as_json: AsJson = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print one row per run as CSV.")] = False,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Print the metrics in the text format of Prometheus.")
    ] = False,
) -> None:
    """List recorded runs, newest last."""
    reject_combination({"--limit": limit is not None, "--all": show_all})
    formats = {"--ids": ids, "--json": as_json, "--csv": csv, "--prometheus": prometheus}
    reject_combination(formats)
    wanted = limit if limit or show_all or any(formats.values()) else NEWEST
    found = llmb.find_runs(filters or (), sort=sort, reverse=reverse, limit=wanted, rescan=rescan)
    if as_json:
        output.print_text('{"runs": [\n' + ",\n".join(found.documents) + "\n]}")
    elif ids:
        output.print_text("".join(f"{run_id}\n" for run_id in found.run_ids), newline=False)
    elif csv:
        output.print_text(llmb.runs_csv(llmb.read_reported_runs(found.results())), newline=False)
    elif prometheus:
        output.print_text(llmb.prometheus_text(found.results()), newline=False)
    elif found.total:
        _print_list(found, sort)
    else:
        output.print_message("no run matches" if filters else f"no runs in {llmb.home_folder()}")


def _print_list(found: llmb.RunListing, sort: str) -> None:
    """Print the runs, the number of those that are not listed, and a line for each damaged record."""
    from llmb.cli.views.run_list import is_damaged, print_run_list

    results = found.results()
    print_run_list(results)
    if found.total > len(results):
        which = "the newest" if sort == "created" else f"by {sort}, the first"
        output.print_text(f"{which} {len(results)} of {found.total:,} runs; --all lists all")
    for result in results:
        if is_damaged(result):
            output.print_message(f"{result.run_id}: {result.reason}")
