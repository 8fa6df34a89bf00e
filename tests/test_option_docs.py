"""The page of each plugin documents exactly the options of the plugin."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import attrs
import pytest

import llmb

DOCS = Path(__file__).parents[1] / "docs"


def first_cells(page: str, heading: str) -> list[str]:
    """Return the first column of the table with this heading."""
    [table] = re.findall(rf"^\| {re.escape(heading)} \|.*\n((?:\|.*\n)+)", (DOCS / page).read_text(), re.MULTILINE)
    return [line.split("|")[1] for line in table.splitlines()[1:]]


@pytest.mark.parametrize("name", ["maxtext", "megatron_bridge", "nemo_launcher"])
def test_the_page_of_a_framework_has_a_row_for_each_option(name: str) -> None:
    documented = [cell.strip(" `") for cell in first_cells(f"{name.replace('_', '-')}.md", "key of `[framework]`")]
    assert documented == [field.name for field in attrs.fields(llmb.PluginRegistry().framework(name).options)]


def test_the_page_of_slurm_has_a_row_for_each_option() -> None:
    cells = first_cells("slurm.md", "key of `[target]`")
    documented = [name for cell in cells for name in re.findall(r"`\[?(?:target\.)?(\w+)\]?`", cell)]
    assert sorted(documented) == sorted(
        field.name for field in attrs.fields(llmb.PluginRegistry().scheduler("slurm").options)
    )


def test_the_page_of_local_shows_each_option_with_its_default() -> None:
    page = (DOCS / "local.md").read_text()
    shown = tomllib.loads(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0])["target"]
    without = set(re.findall(r"`(\w+)`", page.partition("except for ")[2].partition("which have none")[0]))
    default = llmb.PluginRegistry().scheduler("local").options()
    container = shown.pop("container")
    assert shown.pop("scheduler") == "local"
    for table, options in ((shown, default), (container, default.container)):
        assert set(table) == {field.name for field in attrs.fields(type(options))} - {"container"}
        for name in set(table) - without:
            value = getattr(options, name)
            assert table[name] == (list(value) if isinstance(value, tuple) else value), name
