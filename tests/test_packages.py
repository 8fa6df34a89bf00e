"""The metadata of each distribution: those of the product, and the examples of third-party plugins."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from parts.wheels import EXAMPLES, PRODUCT

import llmb

PLUGINS = [*PRODUCT[1:], *EXAMPLES]


def project(folder: Path) -> dict[str, Any]:
    return dict(tomllib.loads((folder / "pyproject.toml").read_text())["project"])


@pytest.mark.parametrize("folder", [*PRODUCT, *EXAMPLES], ids=lambda folder: folder.name)
def test_a_package_has_the_metadata_that_an_index_shows(folder: Path) -> None:
    metadata = project(folder)
    assert {"name", "version", "description", "readme", "requires-python", "classifiers", "dependencies"} <= set(
        metadata
    )
    if "llmb.packs" not in metadata.get("entry-points", {}):  # a pack has no code
        assert "Typing :: Typed" in metadata["classifiers"]
        assert [*folder.glob("src/*/py.typed")]
    readme = (folder / metadata["readme"]).read_text()
    assert readme.startswith(f"# {metadata['name']}\n")
    assert not re.search(r"\]\((?!https?:|#)", readme), "an index does not have the other files of the repository"


@pytest.mark.parametrize("folder", [*PRODUCT, *EXAMPLES], ids=lambda folder: folder.name)
def test_a_package_contains_its_license(folder: Path) -> None:
    metadata = project(folder)
    assert (metadata["license"], metadata["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert (folder / "LICENSE").read_text() == (PRODUCT[0].parent / "LICENSE").read_text()


def test_the_extras_of_core_install_every_package() -> None:
    extras = project(PRODUCT[0])["optional-dependencies"]
    assert {Requirement(each).name for needs in extras.values() for each in needs} >= {
        project(folder)["name"] for folder in PRODUCT[1:]
    }


def test_the_citation_names_the_version_of_core() -> None:
    assert f"version: {llmb.VERSION}\n" in (PRODUCT[0].parent / "CITATION.cff").read_text()


@pytest.mark.parametrize("folder", [*PRODUCT, *EXAMPLES], ids=lambda folder: folder.name)
def test_the_newest_entry_of_a_changelog_is_the_package_s_version(folder: Path) -> None:
    metadata = project(folder)
    title, *_ = changelog = (folder / "CHANGELOG.md").read_text().splitlines()
    assert title == f"# Changelog of {metadata['name']}"
    assert next(line for line in changelog if line.startswith("## ")).split()[1] == metadata["version"]


def test_the_core_knows_its_own_version() -> None:
    assert project(PRODUCT[0])["version"] == llmb.VERSION


def lists_of(table: Any) -> Iterator[Collection[str]]:
    """Yield every list of strings in the tables, and the keys of every table."""
    if isinstance(table, dict):
        yield table.keys()
    elif isinstance(table, list) and all(isinstance(each, str) for each in table):
        yield table
    for below in table.values() if isinstance(table, dict) else table if isinstance(table, list) else ():
        yield from lists_of(below)


@pytest.mark.parametrize("folder", PRODUCT[1:], ids=lambda folder: folder.name)
def test_a_plugin_is_in_every_list_of_the_root_that_contains_another_plugin(folder: Path) -> None:
    lists = [*lists_of(tomllib.loads((folder.parents[1] / "pyproject.toml").read_text()))]
    for model in ("llmb-maxtext", "llmb_maxtext", "plugins/maxtext/src"):
        mine = model.replace("maxtext", folder.name.replace("_", "-") if model.startswith("llmb-") else folder.name)
        assert [each for each in lists if model in each and mine not in each] == []
        assert [each for each in lists if mine in each]


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_a_plugin_requires_a_version_of_llmb_with_the_same_hooks(folder: Path) -> None:
    [needs] = [each for each in map(Requirement, project(folder)["dependencies"]) if each.name == "llmb"]
    major, minor, _ = map(int, llmb.VERSION.split("."))
    assert needs.specifier.contains(llmb.VERSION)
    assert not needs.specifier.contains(f"{major}.{minor + 1}.0")
    assert not needs.specifier.contains(f"{major}.{minor - 1}.9")


@pytest.mark.parametrize(
    "file", [file for each in EXAMPLES for file in each.glob("src/**/*.py")], ids=lambda file: file.name
)
def test_an_example_imports_of_llmb_only_public_names_and_of_other_plugins_none(file: Path) -> None:
    nodes = list(ast.walk(ast.parse(file.read_text())))
    imported = [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    assert not [name for name in imported if name.startswith("llmb")]
    own = file.relative_to(next(each for each in EXAMPLES if each in file.parents)).parts[1]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("llmb"):
            package = (node.module or "").partition(".")[0]
            assert package == own or node.module == "llmb"
            if package == "llmb":
                assert {each.name for each in node.names} <= set(llmb.__all__)
