"""The distributions as from an index: built, and installed outside of this repository."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from parts.wheels import EXAMPLES, PRODUCT, ROOT, EmptyEnvironment

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("wheels")]  # built once


@pytest.fixture(scope="module")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> EmptyEnvironment:
    """Install core and its plugins."""
    environment = EmptyEnvironment(tmp_path_factory.mktemp("product"))
    environment.install(*(wheels[folder.name] for folder in PRODUCT))
    return environment


@pytest.mark.parametrize("folder", [*PRODUCT, *EXAMPLES], ids=lambda folder: folder.name)
def test_a_wheel_holds_every_file_of_its_package_and_nothing_else(folder: Path, wheels: dict[str, Path]) -> None:
    listed = subprocess.run(["git", "ls-files", "src"], cwd=folder, capture_output=True, text=True, check=True).stdout
    files = {line.removeprefix("src/") for line in listed.splitlines()}
    with zipfile.ZipFile(wheels[folder.name]) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == files


def test_the_product_works_without_its_repository(installed: EmptyEnvironment, tmp_path: Path) -> None:
    quickstart = shutil.copy(ROOT / "examples/quickstart.toml", tmp_path)
    [run] = report(installed, "run", str(quickstart), "--dry-run")["runs"]
    assert run["recipe"] == "maxtext/llama2-tiny"
    assert "maxtext.trainers.pre_train.train" in run["script"]
    assert [task["kind"] for task in run["preparation"]] == ["virtual environment"]


def test_core_alone_names_the_packages_with_plugins(wheels: dict[str, Path], tmp_path: Path) -> None:
    environment = EmptyEnvironment(tmp_path)
    environment.install(wheels["core"])
    done = environment.llmb("recipes")
    assert done.returncode == 0
    assert "no framework is installed" in done.stderr
    for folder in PRODUCT[1:]:
        name = "llmb-" + folder.name.replace("_", "-")
        assert f"{name} ({folder.name})" in done.stderr


def test_every_plugin_is_found_by_its_entry_point(installed: EmptyEnvironment) -> None:
    plugins = report(installed, "plugins")["plugins"]
    assert [plugin for plugin in plugins if plugin["error"]] == []
    assert {plugin["name"] for plugin in plugins} == {folder.name for folder in PRODUCT[1:]}


def test_every_recipe_of_the_repository_is_there(installed: EmptyEnvironment) -> None:
    files = {
        f"{folder.name}/{file.name.removesuffix('.toml')}"
        for folder in PRODUCT[1:]
        for file in folder.glob("src/*/recipes/*.toml")
    }
    addresses = [recipe["address"] for recipe in report(installed, "recipes")["recipes"]]
    assert len(addresses) == len(files)
    assert all(any(f"{address}.".startswith(f"{file}.") for address in addresses) for file in files)  # @25.10 is a line


def report(environment: EmptyEnvironment, *arguments: str) -> dict[str, Any]:
    done = environment.llmb(*arguments, "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    return dict(json.loads(done.stdout))
