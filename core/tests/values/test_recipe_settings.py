"""Tables of a recipe that core reads for plugins: each error is reported with its key, never as a crash."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from llmb import Nsys, RecipeError, Repository, Venv, Workload, plan

SPECIFIER = 'a version specifier, such as ">=3.12" or "==3.12.*"'
WORD = "a word without blanks that does not begin with -"
REPOSITORY = {"name": "trainer", "url": "https://git.example/trainer", "commit": "1" * 40}


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        (
            {"comit" if key == "commit" else key: value for key, value in REPOSITORY.items()},
            [
                f"framework.repository.commit: required key is missing; expected {WORD}",
                "framework.repository.comit: unknown key; expected one of name, url, commit (did you mean 'commit'?)",
            ],
        ),
        (
            REPOSITORY | {"url": 3},
            ["framework.repository.url: invalid value 3; expected a URL or path that does not begin with -"],
        ),
        (
            REPOSITORY | {"name": "acme/trainer"},
            ['framework.repository.name: invalid value "acme/trainer"; expected letters, digits and . _ + -'],
        ),
        ("trainer", ['framework.repository: invalid value "trainer"; expected a table']),
    ],
)
def test_an_invalid_repository_is_reported_with_its_key(table: Any, lines: list[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        Repository.of({"repository": table})
    assert [*map(str, caught.value.faults)] == lines


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "framework.nsys.command: required key is missing; expected a list, each a non-empty string"),
        (
            {"command": "nsys profile"},
            'framework.nsys.command: invalid value "nsys profile"; expected a list, each a non-empty string',
        ),
        (
            {"command": ["nsys"], "rank": 4},
            "framework.nsys.rank: unknown key; expected one of command, with_cpu, without_cpu, gpu_metrics, ranks"
            " (did you mean 'ranks'?)",
        ),
    ],
)
def test_an_invalid_nsys_table_is_reported_with_its_key(table: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        Nsys.of({"nsys": table})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lock": "cpu.txt"}, f"framework.python: required key is missing; expected {SPECIFIER}"),
        (
            {"lock": "cpu.txt", "python": "==3.12.*", "space_gb": 0},
            "framework.space_gb: invalid value 0; expected a positive number",
        ),
        (
            {"lock": "cpu.txt", "python": "3.12"},
            f'framework.python: invalid value "3.12"; expected {SPECIFIER}',
        ),
        (
            {"lock": "cpus.txt", "python": ">=3.12"},
            "framework.lock: invalid value \"cpus.txt\"; expected one of cpu.txt (did you mean 'cpu.txt'?)",
        ),
    ],
)
def test_an_invalid_environment_is_reported_with_its_key(
    settings: dict[str, Any], message: str, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"acme_trainer/__init__.py": "", "acme_trainer/environments/cpu.txt": "x==1\n"}
    site.install("acme-trainer", files=files, entry_points={})
    monkeypatch.syspath_prepend(str(site.folder))
    with pytest.raises(RecipeError) as caught:
        Venv.shipped("acme_trainer", settings)
    assert str(caught.value) == message


def test_an_environment_needs_a_specifier_of_its_python_versions() -> None:
    for python in ("3.12", "python3.12", ""):
        with pytest.raises(ValueError, match=r"expected a version specifier, such as"):
            Venv(lock="", python=python)
    assert Venv(lock="", python="==3.12.*,!=3.12.1").python == "==3.12.*,!=3.12.1"


def test_an_error_of_a_recipe_s_settings_names_the_recipe(spec: Any) -> None:
    [placed] = spec.usual().load().runs
    wrong = attrs.evolve(placed.run, settings={**placed.run.settings, "lock": "cpus.txt"})
    with pytest.raises(RecipeError) as caught:
        plan(Workload(file="spec.toml", runs=(attrs.evolve(placed, run=wrong),)))
    assert str(caught.value).startswith(
        f'{placed.run.recipe}: framework.lock: invalid value "cpus.txt"; expected one of '
    )
