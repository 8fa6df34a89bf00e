"""docs/architecture.md names every package, and lint-imports knows each."""

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
PACKAGES = sorted(path.stem for path in CORE.iterdir() if path.suffix in ("", ".py") and not path.name.startswith("__"))


def attributes_of_llmb(file: Path) -> set[str]:
    """Return the names that a module uses as ``llmb.NAME``."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "llmb"}


def imports_of(file: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def test_lint_knows_every_package_and_module_of_core() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    here = {f"llmb.{name}" for name in PACKAGES}
    private, layers, private_to_cli = contracts[2]["forbidden_modules"], contracts[3]["layers"], contracts[4]
    assert set(private) == here
    assert set(private_to_cli["forbidden_modules"]) == here - {"llmb.cli"}
    assert {name for layer in layers for name in layer.split(" | ")} == here


@pytest.mark.parametrize("package", [*PACKAGES, *PLUGINS])
def test_every_package_has_one_paragraph(package: str) -> None:
    assert len(re.findall(rf"^\*\*`{package}`\*\*", PAGE, re.MULTILINE)) == 1


def test_every_file_that_the_pages_on_the_code_name_exists() -> None:
    folders = "core|plugins|examples|tests|docs|tools|benchmarks|[.]ci|[.]github"
    named = [CORE / name for name in re.findall(r"`(\w+/\w+\.py)`", PAGE)]
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named += [ROOT / name for name in re.findall(rf"`((?:{folders})/[^`*\s]+)`", text) if "NAME" not in name]
    assert len(named) > 40
    assert [str(file) for file in named if not file.exists()] == []


@pytest.mark.parametrize("plugin", [*(f"plugins/{name}" for name in PLUGINS), *EXAMPLES])
def test_a_plugin_imports_of_core_only_what_is_public(plugin: str) -> None:
    import llmb

    public = {f"llmb.{name}" for name in llmb.__all__} | {"llmb"}
    names = {name for file in (ROOT / plugin / "src").rglob("*.py") for name in imports_of(file)}
    assert {name for name in names if name.partition(".")[0] == "llmb"} <= public


def test_the_command_line_uses_only_what_is_public() -> None:
    import llmb

    files = list((CORE / "cli").rglob("*.py"))
    imported = {name for file in files for name in imports_of(file) if name.partition(".")[0] == "llmb"}
    used = {name for file in files for name in attributes_of_llmb(file)}
    assert {name for name in imported if not name.startswith("llmb.cli")} == {"llmb"}
    assert used <= set(llmb.__all__)
    assert {"start", "attach", "cancel"} <= used
