"""The steps of a run, as its record keeps them."""

from __future__ import annotations

from pathlib import Path

from llmb.logs.steps_csv import StepColumns, read_steps_csv
from llmb.records.record import read_file
from llmb.values.errors import RecordError

STEPS_FILE = "steps.csv"


def read_steps(directory: Path) -> StepColumns:
    """Return the steps in the record of a run; no columns before there is a result. Raise RecordError."""
    text = read_steps_text(directory)
    try:
        return read_steps_csv(text) if text else {}
    except ValueError as error:
        raise RecordError(f"{directory / STEPS_FILE} is damaged: {error}") from error


def read_steps_text(directory: Path) -> str:
    """Return the CSV of the steps in the record of a run, "" before there is a result. Raise RecordError."""
    file = directory / STEPS_FILE
    try:
        return (read_file(file) or b"").decode()
    except ValueError as error:
        raise RecordError(f"{file} is damaged: {error}") from error
