"""The checks of ``llmb doctor`` as a table."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

import llmb
from llmb.cli.views.tables import Column, print_table

MARKS = {True: ("ok", "green"), False: ("missing", "red"), None: ("-", "")}
"""The text and style for each value of ``DoctorCheck.ok``."""

DETAIL_WIDTH = 30
"""The least width of the column of details, in characters."""


def print_checks(checks: Iterable[llmb.DoctorCheck]) -> None:
    """Print one line per check, and the remedy below a check that failed."""
    rows: list[tuple[str | Text, ...]] = []
    for check in checks:
        rows.append((Text(*MARKS[check.ok]), check.name, check.detail))
        if check.remedy and not check.ok:
            rows.append(("", "", Text(check.remedy, "yellow")))
    print_table([Column(), Column(), Column(wraps=DETAIL_WIDTH)], rows)
