"""Consistency of the page for plugin authors with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import llmb
from llmb.hookspecs import REQUIRED

PAGE = (Path(__file__).parents[1] / "docs/plugins.md").read_text()


def words(row: str) -> set[str]:
    """Return the names in the cells of the table's row that begins with this word."""
    [line] = [line for line in PAGE.splitlines() if line.startswith(f"| {row} | ")]
    return set(re.findall(r"`(\w+)`", line))


@pytest.mark.parametrize(
    ("kind", "hooks"),
    [("framework", llmb.FrameworkHooks), ("scheduler", llmb.SchedulerHooks), ("extension", llmb.ExtensionHooks)],
)
def test_every_hook_is_named(kind: str, hooks: type) -> None:
    stated = {name for name in (*vars(hooks), *hooks.__annotations__) if not name.startswith("_")}
    assert words(kind) == stated


@pytest.mark.parametrize("kind", ["framework", "scheduler", "extension"])
def test_a_hook_that_a_plugin_must_have_is_in_the_column_that_says_so(kind: str) -> None:
    must = re.findall(rf"^\| {kind} \|(.*?)\|", PAGE, re.MULTILINE)[0]
    assert set(re.findall(r"`(\w+)`", must)) - {"options"} == set(REQUIRED[kind])


def test_every_public_name_is_named_and_no_other() -> None:
    table = PAGE.partition("## Public names")[2]
    assert sorted(re.findall(r"`(\w+)`", table.partition("| for |")[2])) == sorted(llmb.__all__)


def test_the_example_on_the_page_works() -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    plugin = names["MI300X"]
    assert isinstance(plugin, type)
    [accelerator] = plugin().accelerators()
    assert accelerator.dtypes == ("bf16",)
