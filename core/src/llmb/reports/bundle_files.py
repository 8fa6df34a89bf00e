"""Files of a bundle on a disk, and the tables that describe its runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from llmb.records.record import RunRecord
from llmb.records.result import read_result
from llmb.reports.junit_xml import junit_xml
from llmb.reports.report import describe_runs
from llmb.reports.runs_csv import runs_csv
from llmb.values.errors import LlmbError
from llmb.values.report_content import Report

MANIFEST, SIGNATURE = "manifest.json", "manifest.json.sig"
NAMESPACE = "llmb-bundle"
"""The namespace of signatures, so that a signature of something else is not accepted."""

NEEDED = ("run.toml", "events.jsonl", "result.json", "steps.csv")
"""Files that each record of a run that ended has."""


def write_files(folder: str, files: Mapping[str, bytes]) -> None:
    """Write the files of a bundle below a folder. Raise LlmbError if a file cannot be written."""
    for name, data in files.items():
        path = Path(folder, name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise LlmbError(f"cannot write {name!r} of the bundle to {folder}: {error.strerror}") from error


def describe_files(folder: str, run_ids: Iterable[str]) -> Report:
    """Return the report on the runs whose records are below a folder."""
    results = [read_result(RunRecord(Path(folder, "runs", run_id))) for run_id in run_ids]
    return describe_runs(results, masked=True)  # so that the environment of the receiver does not matter


def report_tables(report: Report) -> dict[str, str]:
    """Return the CSV and the JUnit XML of a report."""
    return {"report.csv": runs_csv(report.runs), "report.xml": junit_xml(report)}


def without_folder(folder: str, texts: Mapping[str, str]) -> dict[str, bytes]:
    """Return files without the name of the folder."""
    return {name: text.replace(folder, ".").encode() for name, text in texts.items()}
