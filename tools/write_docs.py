"""Writes the generated parts of the documentation: ``uv run python tools/write_docs.py``.

These are the table of recipes in README.md, the table of peaks in docs/mfu.md, the tables of keys on the pages of the
spec and of the plugins, docs/command-line.md, docs/python.md and docs/python-plugins.md.
"""

from __future__ import annotations

from pathlib import Path

import command_line_page
import key_tables
import peaks_table
import python_pages
import recipes_table

ROOT = Path(__file__).parents[1]


def generated() -> dict[Path, str]:
    """Return the text of each file that has a generated part, by path."""
    readme = ROOT / "README.md"
    return {
        readme: recipes_table.with_recipes(readme.read_text()),
        ROOT / "docs/command-line.md": command_line_page.page(),
        peaks_table.PAGE: peaks_table.with_peaks(peaks_table.PAGE.read_text()),
        **key_tables.pages(),
        **python_pages.pages(),
    }


if __name__ == "__main__":
    for path, text in generated().items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
