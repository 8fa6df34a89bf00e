"""The page: its sections, from a report to one HTML file."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from llmb import END_STATES, Report, ReportedRun, ReportedSet, ReportedSetting, counted, resource_text
from llmb_report import text
from llmb_report.plot import Table
from llmb_report.row_plots import SPEEDS, ratio_plot, speed_plot
from llmb_report.scaling_plots import find_scalings, scaling_plots
from llmb_report.step_plots import step_plot
from llmb_report.svg import plotting

MAX_NAMED_RUNS = 3
"""Runs that a table of settings names. More are counted."""

KIND_TITLES: Mapping[str, str] = {
    "image": "Image",
    "parallelism": "Parallelism and batch",
    "model": "Model and dtype",
    "arguments": "Arguments",
    "environment": "Environment",
    "system": "Driver, libraries and target",
    "hosts": "Hosts",
    "llmb": "llmb and plugins",
}


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"number": text.number, "ratio": text.ratio}
    return environment.from_string(resource_text("llmb_report", "page.html.j2"))


def render_page(report: Report) -> str:
    """Return the report as one HTML file."""
    names = text.labels(report.sets)
    with plotting():
        plots = _plots(report, names)
    return _template().render(
        report=report,
        names=names,
        title=text.page_title(report.sets),
        style=Markup(resource_text("llmb_report", "style.css")),  # noqa: S704  # this package contains it
        counts=_counts(report),
        facts=_facts(report, names),
        failures=[_failure(run) for run in report.runs if run.ended_incomplete],
        without_failure=_without_failure(report.runs),
        differences=_differences(report.settings),
        common=_common(report.settings),
        **plots,
    )


def _plots(report: Report, names: Sequence[str]) -> dict[str, Any]:
    """Return the plots of all sections."""
    groups: dict[str, list[ReportedSet]] = {}
    for title, each in zip(text.titles(report.sets), report.sets, strict=True):
        groups.setdefault(title, []).append(each)
    steps = (step_plot(f"steps-{number}", title, sets) for number, (title, sets) in enumerate(groups.items(), 1))
    scalings = enumerate(find_scalings(report.sets), 1)
    return {
        "ratio": ratio_plot(report.sets, names),
        "step_plots": [plot for plot in steps if plot],
        "speed_plots": [plot for speed in SPEEDS if (plot := speed_plot(speed, report.sets, names))],
        "scaling_plots": [plot for number, each in scalings for plot in scaling_plots(number, each)],
    }


def _counts(report: Report) -> list[tuple[str, int]]:
    """Return the number of sets by verdict, and of those that did not complete."""
    ended = [each for each in report.sets if not any(run.ended_incomplete for run in each.runs)]
    found = Counter(each.verdict or "no verdict" for each in ended)
    counts = [(name, found[name]) for name in ("pass", "fail", "undecided", "no verdict")]
    return [*counts, ("not completed", len(report.sets) - len(ended))]


def _facts(report: Report, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the worst ratio, when and where the runs took place, and the version of llmb."""
    ratios = [
        (each.step_time_ratio, name)
        for name, each in zip(names, report.sets, strict=True)
        if each.step_time_ratio is not None
    ]
    worst, name = max(ratios, default=(None, ""))
    targets = ", ".join(dict.fromkeys(run.target for run in report.runs if run.target))
    hosts = list(dict.fromkeys(host for run in report.runs if (host := run.settings.get("hosts"))))
    shown = f"{', '.join(hosts[:MAX_NAMED_RUNS])}{' …' if len(hosts) > MAX_NAMED_RUNS else ''}"
    rows = (
        ("worst ratio", f"{text.ratio(worst)} ({name})" if worst is not None else ""),
        ("runs", f"{len(report.runs)} in {counted(len({*text.titles(report.sets)}), 'configuration')}"),
        ("when", text.period([str(run.result.get("created") or "") for run in report.runs])),
        ("where", f"{targets} ({shown})" if hosts else targets),
        ("written by", f"llmb {report.llmb_version}"),
    )
    return [(key, value) for key, value in rows if value]


def _failure(run: ReportedRun) -> dict[str, Any]:
    """Return why a run did not complete."""
    failure = run.result.get("failure") or {}
    places = [f"{name} {failure[name]}" for name in ("rank", "host") if failure.get(name) is not None]
    return {
        "run_id": run.run_id,
        "state": run.result["state"],
        "cause": failure.get("cause") or run.result.get("reason") or "unknown",
        "origin": failure.get("origin") or "unknown",
        "place": ", ".join(places),
        **{name: failure.get(name) for name in ("evidence", "line", "remedy")},
    }


def _without_failure(runs: Sequence[ReportedRun]) -> str:
    """Return the text if no run failed. Runs that have not ended did not complete either."""
    unfinished = sum(run.result.get("state") not in END_STATES for run in runs)
    if not unfinished:
        return "Every run completed."
    return f"No run failed; {counted(unfinished, 'run')} {'has' if unfinished == 1 else 'have'} not ended."


def _differences(settings: Sequence[ReportedSetting]) -> Table | None:
    """Return the settings in which the runs differ, one row per value."""
    rows = [
        (each.key if number == 0 else "", value, _name_runs(runs))
        for each in settings
        if len(each.values) > 1
        for number, (value, runs) in enumerate(each.values.items())
    ]
    columns = ("setting", "value", "runs")
    return Table(columns=columns, rows=rows, text=columns) if rows else None


def _name_runs(runs: Sequence[str]) -> str:
    return ", ".join(runs) if len(runs) <= MAX_NAMED_RUNS else f"{len(runs)} runs"


def _common(settings: Sequence[ReportedSetting]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the settings that all runs share, by kind."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for each in settings:
        if len(each.values) == 1:
            kinds.setdefault(each.kind, []).append((each.key, next(iter(each.values))))
    return [(KIND_TITLES.get(kind, kind), rows) for kind, rows in kinds.items()]
