"""``llmb report``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.options import OptionsError, runs_argument

Runs = Annotated[
    list[str], runs_argument("Run ids or unique prefixes, or filters in braces such as '{verdict=fail since=7d}'.")
]


def report(
    runs: Runs,
    page: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.html", help="Write the report as one HTML file with plots."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the verdicts as JUnit XML.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write one row per run as CSV.")] = None,
) -> None:
    """Write a report on recorded runs. FILE may be - for standard output."""
    from llmb.cli.views.choose_view import show_activity

    files = [each for each in (page, junit, csv) if each]
    if not files:
        raise OptionsError("no output is named; add -o FILE.html, --junit FILE or --csv FILE")
    if len(set(files)) < len(files):
        raise OptionsError("two outputs have the same name")
    renderers: dict[Path, Callable[[llmb.Report], str]] = {}
    if page:
        renderers[page] = _page_renderer(page)
    if junit:
        renderers[junit] = llmb.junit_xml
    if csv:
        renderers[csv] = lambda report: llmb.runs_csv(report.runs)
    with show_activity("reading the runs"):
        found = llmb.report(runs)
    with show_activity("writing the report"):
        texts = {file: render(found) for file, render in renderers.items()}
    for file, text in texts.items():
        output.write_file(file, text)


def _page_renderer(file: Path) -> Callable[[llmb.Report], str]:
    """Return the renderer of an extension for the suffix of a file. Raise PluginError before anything is read."""
    suffix = ".html" if file == output.STANDARD_OUTPUT else file.suffix.lower()
    return llmb.PluginRegistry().report_renderer(suffix)
