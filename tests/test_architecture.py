"""docs/architecture.md names every package, and what it says of their imports is so."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core/src/llmb"
PAGE = (ROOT / "docs/architecture.md").read_text()
PLUGINS = sorted(path.parent.name for path in (ROOT / "plugins").glob("*/pyproject.toml"))
EXAMPLES = sorted(f"examples/plugins/{path.parent.name}" for path in ROOT.glob("examples/plugins/*/pyproject.toml"))
ALONE = {"files", "paths", "version"}  # modules that need a line only


def named(text: str) -> list[str]:
    return re.findall(r"`([a-z_]+)`", text)


TABLE = {
    named(package)[0]: set(named(imports))
    for package, imports in re.findall(r"^\| (`.+?`) \|(.*)\|$", PAGE, re.MULTILINE)
}
PICTURE = PAGE.partition("```mermaid")[2].partition("```")[0]
ARROWS = re.findall(r"^ +(\w+)(?:\(\[.*?\]\))? -->(?:\|[^|]+\|)? (\w+)(?:\(\[.*?\]\))?$", PICTURE, re.MULTILINE)
OUTSIDE = set(re.findall(r"(\w+)\(\[", PICTURE))


def imported(package: str) -> set[str]:
    """The other packages of core that a package, or a module beside them, imports anywhere."""
    path = CORE / package
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    return {name.split(".")[1] for file in files for name in imports_of(file) if name.startswith("llmb.")} - {package}


def imports_of(file: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def test_every_package_and_module_of_core_has_its_row() -> None:
    there = {path.stem for path in CORE.iterdir() if path.suffix in ("", ".py") and not path.name.startswith("__")}
    assert set(TABLE) == there - ALONE


@pytest.mark.parametrize("package", TABLE)
def test_a_package_imports_what_the_table_says(package: str) -> None:
    assert imported(package) == TABLE[package]


@pytest.mark.parametrize("package", sorted(ALONE))
def test_a_module_that_needs_a_line_only_imports_nothing_of_core(package: str) -> None:
    assert imported(package) == set()


def test_nothing_imports_what_stands_below_it_in_the_table() -> None:
    order = [*ALONE, *TABLE]
    assert [
        (above, below) for above in TABLE for below in TABLE[above] if order.index(below) > order.index(above)
    ] == []


def test_each_arrow_of_the_picture_joins_two_packages_of_which_one_imports_the_other() -> None:
    assert len(ARROWS) == PICTURE.count("-->")
    inside = [(one, other) for one, other in ARROWS if not {one, other} & OUTSIDE]
    assert [arrow for arrow in inside if arrow[1] not in TABLE[arrow[0]] and arrow[0] not in TABLE[arrow[1]]] == []


def test_lint_knows_every_package_and_module_of_core() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    here = {f"llmb.{name}" for name in (*TABLE, *ALONE)}
    private, layers = contracts[2]["forbidden_modules"], contracts[3]["layers"]
    assert set(private) == here
    assert {name for layer in layers for name in layer.split(" | ")} == here


@pytest.mark.parametrize("package", [*TABLE, *PLUGINS])
def test_every_package_has_one_paragraph(package: str) -> None:
    assert len(re.findall(rf"^\*\*`{package}`\*\*", PAGE, re.MULTILINE)) == 1


@pytest.mark.parametrize("plugin", [*(f"plugins/{name}" for name in PLUGINS), *EXAMPLES])
def test_a_plugin_imports_of_core_only_what_is_public(plugin: str) -> None:
    import llmb

    public = {f"llmb.{name}" for name in llmb.__all__} | {"llmb"}
    names = {name for file in (ROOT / plugin / "src").rglob("*.py") for name in imports_of(file)}
    assert {name for name in names if name.partition(".")[0] == "llmb"} <= public
