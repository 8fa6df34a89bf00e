"""Verdicts as JUnit XML, for continuous integration: one test case per set of repeats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from llmb.values.arguments import check_arguments
from llmb.values.report import Report, ReportedRun, ReportedSet

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids, even escaped."""


@check_arguments
def junit_xml(report: Report) -> str:
    """Return a report as JUnit XML, with one suite per recipe."""
    suites: dict[str, list[ReportedSet]] = {}
    for each in report.sets:
        suites.setdefault(each.recipe, []).append(each)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites{_attributes(name='llmb', **_counts(report.sets))}>",
        *(line for recipe, sets in suites.items() for line in _suite(recipe, sets)),
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _suite(recipe: str, sets: Sequence[ReportedSet]) -> Iterator[str]:
    created = sorted(str(run.result["created"]) for each in sets for run in each.runs if run.result.get("created"))
    timestamp = {"timestamp": created[0].partition(".")[0].partition("+")[0]} if created else {}
    yield f"  <testsuite{_attributes(name=recipe, **_counts(sets), time=_time_s(sets), **timestamp)}>"
    for each in sets:
        yield from _case(each)
    yield "  </testsuite>"


def _case(each: ReportedSet) -> Iterator[str]:
    classname = ".".join((each.recipe, each.gpu_type, each.dtype))
    yield f"    <testcase{_attributes(classname=classname, name=each.title, time=_time_s([each]))}>"
    yield "      <properties>"
    for name, value in _properties(each).items():
        yield f"        <property{_attributes(name=name, value=value)}/>"
    yield "      </properties>"
    yield from (f"      {line}" for line in _outcome(each))
    yield "    </testcase>"


def _properties(each: ReportedSet) -> dict[str, Any]:
    return {
        "run_ids": ",".join(run.run_id for run in each.runs),
        "step_time_s": each.step_time_s,
        "published_step_time_s": each.published_step_time_s,
        "ratio": each.step_time_ratio,
        "interval": None if each.interval is None else " ".join(map(str, each.interval)),
        "verdict": each.verdict,
    }


def _outcome(each: ReportedSet) -> Iterator[str]:
    """Yield the element of a case that did not pass."""
    if incomplete := find_incomplete(each):
        failure = incomplete.result.get("failure") or {}
        cause = failure.get("cause") or incomplete.result.get("state")
        reason = incomplete.result.get("reason") or cause
        yield f"<error{_attributes(type=cause, message=reason)}>{_text(failure.get('evidence', ''))}</error>"
    elif each.verdict == "fail":
        yield f"<failure{_attributes(type='slower', message=each.reason)}/>"
    elif each.verdict != "pass":
        yield f"<skipped{_attributes(message=each.reason)}/>"


def find_incomplete(each: ReportedSet) -> ReportedRun | None:
    """Return the first run of a set that ended without completing, or None."""
    return next((run for run in each.runs if run.ended_incomplete), None)


def _counts(sets: Sequence[ReportedSet]) -> dict[str, int]:
    errors = [each for each in sets if find_incomplete(each)]
    rest = [each for each in sets if each not in errors]
    return {
        "tests": len(sets),
        "failures": sum(each.verdict == "fail" for each in rest),
        "errors": len(errors),
        "skipped": sum(each.verdict not in ("pass", "fail") for each in rest),
    }


def _time_s(sets: Iterable[ReportedSet]) -> str:
    """Return the time (s) that all measured steps of these sets took."""
    times = (time_s for each in sets for run in each.runs for time_s in run.steps.get("time_s", ()))
    return f"{sum(time_s for time_s in times if time_s is not None):.3f}"


def _attributes(**values: Any) -> str:
    """Return XML attributes. A value of None is empty."""
    return "".join(
        f" {name}={quoteattr(_clean('' if value is None else str(value)))}" for name, value in values.items()
    )


def _text(text: str) -> str:
    return escape(_clean(text))


def _clean(text: str) -> str:
    return FORBIDDEN.sub("", text)
