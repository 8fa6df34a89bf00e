"""The one table of all benchmarks."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """benchmarks/all.py as a module."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("all_benchmarks", FOLDER / "all.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "all_benchmarks", module)
    spec.loader.exec_module(module)
    yield module
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_a_benchmark_that_breaks_hides_no_other(table: Any) -> None:
    def broken() -> Iterator[Any]:
        yield table.Figure("first", 1.0, 2.0)
        raise SystemExit("no such program")

    lines = list(table.measure({"broken": broken, "whole": lambda: [table.Figure("last", 3.0, 2.0, "s")]}))
    assert [line.cells[:4] for line in lines] == [
        ("first", "1", "at most 2", "pass"),
        ("broken", "", "", "FAIL"),
        ("last", "3 s", "at most 2", "FAIL"),
    ]
    assert lines[1].why == "SystemExit: no such program"


def test_the_page_describes_the_machine_without_naming_it(table: Any) -> None:
    page = table.markdown([table.Figure("a|b", 0.4, 0.5, at_least=True)], table.machine())
    assert "| a\\|b | 0.4 | at least 0.5 | FAIL |  |" in page
    assert all(f"| {name} | " in page for name in ("CPU", "cores", "memory", "OS", "Python", "Slurm"))
    assert Path("/etc/hostname").read_text().strip() not in page
