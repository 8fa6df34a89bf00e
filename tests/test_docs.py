"""Consistency of README, docs and examples with the code."""

from __future__ import annotations

import importlib
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from parts.forked import run_llmb
from parts.toy import ToyRuns

from llmb import RunResult, recipe_addresses

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_readme_mentions_every_command() -> None:
    commands = re.findall(r"^  ([a-z]+) ", run_llmb(["--help"]).stdout, re.MULTILINE)
    assert "run" in commands
    assert [command for command in commands if f"`llmb {command}" not in README] == []


def test_the_readme_lists_the_files_of_a_record(toy: ToyRuns) -> None:
    listed = README.partition("## The record")[2].partition("## ")[0]
    record = Path(toy.run()["directory"])
    names = {file.name + "/" * file.is_dir() for file in record.iterdir()}
    assert names <= set(re.findall(r"`([a-z.]+/?)`", listed))


def test_the_page_on_json_names_the_keys_of_a_run() -> None:
    table = (ROOT / "docs/json.md").read_text().partition("<!-- keys of a run -->")[2].partition('"sets"')[0]
    cells = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(cells))) == set(RunResult.from_dict({}).as_dict())


def test_ci_runs_the_commands_of_the_readme() -> None:
    assert "pip install uv && uv run llmb run examples/quickstart.toml" in README
    assert "pip install uv && uv run --group dev pytest" in README
    assert '"${uv[@]}" pytest\n' in (ROOT / ".ci/run").read_text()


def test_every_link_of_the_documents_exists() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
        assert [link for link in links if not (page.parent / link).exists()] == [], page.name


def test_no_page_of_the_site_links_to_a_file_outside_it() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
        outside = [link for link in links if ROOT / "docs" not in (page.parent / link).resolve().parents]
        assert outside == [], page.name


def test_every_page_has_its_place_in_the_navigation() -> None:
    navigation = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    decisions = {
        f"decisions/{name}" for name in re.findall(r"\((\d.*?\.md)\)", (ROOT / "docs/decisions/index.md").read_text())
    }
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert navigation | decisions == pages, "list the page in mkdocs.yml, or the decision in docs/decisions/index.md"


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_every_example_is_valid(example: Path) -> None:
    done = run_llmb(["validate", str(example)])
    assert done.returncode == 0, done.stderr


def test_every_framework_has_an_example() -> None:
    stated = [tomllib.loads(file.read_text())["workload"]["recipe"] for file in (ROOT / "examples").glob("*.toml")]
    used = [address for each in stated for address in (each if isinstance(each, list) else [each])]
    frameworks = {address.partition("/")[0] for address in recipe_addresses()}
    assert frameworks - {address.partition("/")[0] for address in used} == set()


def test_the_generated_parts_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    generated = importlib.import_module("write_docs").generated()
    old = [str(path.relative_to(ROOT)) for path, text in generated.items() if path.read_text() != text]
    assert old == [], "run `uv run python tools/write_docs.py`"


def test_every_plugin_depends_on_llmb_with_an_upper_bound() -> None:
    for file in (ROOT / "plugins").glob("*/pyproject.toml"):
        needs = tomllib.loads(file.read_text())["project"]["dependencies"]
        assert [need for need in needs if re.fullmatch(r"llmb>=[\d.]+,<[\d.]+", need)], file


def test_no_lock_file_contains_a_download_address() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    locks = [name for name in files if name.endswith((".lock", "environments/cpu.txt"))]
    assert "uv.lock" not in locks
    assert [name for name in locks if "://" in (ROOT / name).read_text()] == []
