"""Verdicts as JUnit XML, for continuous integration: one test case per set of repeats."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from llmb.analysis.valid_range import STEP_TIME_S, possible
from llmb.values.report_content import Report, ReportedRun, ReportedSet
from llmb.values.types.check_arguments import check_arguments

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids, even escaped."""


@check_arguments
def junit_xml(report: Report) -> str:
    """Return a report as JUnit XML, with one suite per recipe."""
    suites: dict[str, list[ReportedSet]] = {}
    for each in report.sets:
        suites.setdefault(each.recipe, []).append(each)
    root = Element("testsuites", _attributes(name="llmb", **_counts(report.sets)))
    for recipe, sets in suites.items():
        _add_suite(root, recipe, sets)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _add_suite(root: Element, recipe: str, sets: Sequence[ReportedSet]) -> None:
    created = sorted(str(run.result["created"]) for each in sets for run in each.runs if run.result.get("created"))
    timestamp = {"timestamp": created[0].partition(".")[0].partition("+")[0]} if created else {}
    suite = SubElement(root, "testsuite", _attributes(name=recipe, **_counts(sets), time=_time_s(sets), **timestamp))
    names = Counter(_name(each) for each in sets)
    for each in sets:
        classname, name = _name(each)
        if names[classname, name] > 1:  # of equal names, GitLab shows the first case only
            name = f"{name} ({each.runs[0].run_id.partition('-')[0]})"
        case = SubElement(suite, "testcase", _attributes(classname=classname, name=name, time=_time_s([each])))
        properties = SubElement(case, "properties")
        for key, value in _properties(each).items():
            SubElement(properties, "property", _attributes(name=key, value=value))
        _add_outcome(case, each)


def _name(each: ReportedSet) -> tuple[str, str]:
    """Return the class name and the name of a case."""
    return ".".join((each.recipe, each.gpu_type, each.dtype)), each.title


def _properties(each: ReportedSet) -> dict[str, Any]:
    return {
        "run_ids": ",".join(run.run_id for run in each.runs),
        "step_time_s": each.step_time_s,
        "published_step_time_s": each.published_step_time_s,
        "ratio": each.step_time_ratio,
        "interval": None if each.interval is None else " ".join(map(str, each.interval)),
        "verdict": each.verdict,
    }


def _add_outcome(case: Element, each: ReportedSet) -> None:
    """Add the element of a case that did not pass."""
    if incomplete := _find_incomplete(each):
        failure = incomplete.result.get("failure") or {}
        cause = failure.get("cause") or incomplete.result.get("state")
        reason = incomplete.result.get("reason") or cause
        error = SubElement(case, "error", _attributes(type=cause, message=reason))
        error.text = _clean(failure.get("evidence", ""))
    elif each.verdict == "fail":
        SubElement(case, "failure", _attributes(type="slower", message=each.reason))
    elif each.verdict != "pass":
        SubElement(case, "skipped", _attributes(message=each.reason))


def _find_incomplete(each: ReportedSet) -> ReportedRun | None:
    """Return the first run of a set that ended without completing, or None."""
    return next((run for run in each.runs if run.ended_incomplete), None)


def _counts(sets: Sequence[ReportedSet]) -> dict[str, int]:
    rest = [each for each in sets if not _find_incomplete(each)]
    return {
        "tests": len(sets),
        "failures": sum(each.verdict == "fail" for each in rest),
        "errors": len(sets) - len(rest),
        "skipped": sum(each.verdict not in ("pass", "fail") for each in rest),
    }


def _time_s(sets: Iterable[ReportedSet]) -> str:
    """Return the time (s) that all measured steps of these sets took."""
    return f"{sum(_steps_time_s(run.steps) for each in sets for run in each.runs):.3f}"


def _steps_time_s(columns: Mapping[str, Sequence[float | None]]) -> float:
    """Return the time (s) of the steps of a run with a possible one. It may be the mean of several steps."""
    times = [possible(time_s, STEP_TIME_S) for time_s in columns.get("time_s", ())]
    counts = columns.get("mean_of", (1,) * len(times))
    return sum(time_s * (count or 1) for time_s, count in zip(times, counts, strict=True) if time_s is not None)


def _attributes(**values: Any) -> dict[str, str]:
    """Return the values as attributes of an element. A value of None is empty."""
    return {name: _clean("" if value is None else str(value)) for name, value in values.items()}


def _clean(text: str) -> str:
    return FORBIDDEN.sub("", text)
