"""What a recipe holds for its plugin in tables that core knows: each fault is told with its key, none as a crash."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from llmb import Nsys, RecipeError, Repository, Venv, Workload, plan

REPOSITORY = {"name": "trainer", "url": "https://git.example/trainer", "commit": "1" * 40}


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (
            {"comit" if key == "commit" else key: value for key, value in REPOSITORY.items()},
            [
                "framework.repository.commit: required key is missing; expected a string",
                "framework.repository.comit: unknown key; expected one of name, url, commit (did you mean 'commit'?)",
            ],
        ),
        (REPOSITORY | {"url": 3}, ["framework.repository.url: invalid value 3; expected a string"]),
        ("trainer", ['framework.repository: invalid value "trainer"; expected a table']),
    ],
)
def test_a_wrong_repository_is_told_by_its_key(table: Any, told: list[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        Repository.of({"repository": table})
    assert [*map(str, caught.value.faults)] == told


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({}, "framework.nsys.command: required key is missing; expected a list, each a string"),
        (
            {"command": "nsys profile"},
            'framework.nsys.command: invalid value "nsys profile"; expected a list, each a string',
        ),
        (
            {"command": ["nsys"], "rank": 4},
            "framework.nsys.rank: unknown key; expected one of command, with_cpu, without_cpu, gpu_metrics, ranks"
            " (did you mean 'ranks'?)",
        ),
    ],
)
def test_a_wrong_way_to_start_nsys_is_told_by_its_key(table: dict[str, Any], told: str) -> None:
    with pytest.raises(RecipeError) as caught:
        Nsys.of({"nsys": table})
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"lock": "cpu.txt"}, "framework.python: required key is missing; expected a string"),
        (
            {"lock": "cpu.txt", "python": "3.12", "space_gb": 0},
            "framework.space_gb: invalid value 0; expected a positive number",
        ),
        (
            {"lock": "cpus.txt", "python": "3.12"},
            "framework.lock: invalid value \"cpus.txt\"; expected one of cpu.txt (did you mean 'cpu.txt'?)",
        ),
    ],
)
def test_a_wrong_environment_is_told_by_its_key(
    settings: dict[str, Any], told: str, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"acme_trainer/__init__.py": "", "acme_trainer/environments/cpu.txt": "x==1\n"}
    site.install("acme-trainer", files=files, entry_points={})
    monkeypatch.syspath_prepend(str(site.folder))
    with pytest.raises(RecipeError) as caught:
        Venv.shipped("acme_trainer", settings)
    assert str(caught.value) == told


def test_what_a_plugin_finds_wrong_in_them_names_the_recipe(spec: Any) -> None:
    [placed] = spec.usual().load().runs
    wrong = attrs.evolve(placed.run, settings={**placed.run.settings, "lock": "cpus.txt"})
    with pytest.raises(RecipeError) as caught:
        plan(Workload(file="spec.toml", runs=(attrs.evolve(placed, run=wrong),)))
    assert str(caught.value).startswith(
        f'{placed.run.recipe}: framework.lock: invalid value "cpus.txt"; expected one of '
    )
