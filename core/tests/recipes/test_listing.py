"""Lists of recipes: filters, order and folded releases."""

from __future__ import annotations

import attrs

from llmb.recipes.listing import PointFilter
from llmb.recipes.releases import fold_releases, newest_first
from llmb.values.model import Parallelism
from llmb.values.recipe import Baseline, Point, Recipe, ScalingRule

MEASURED = Baseline(step_time_s=7.0, release="1", source="a README")


def point(gpu_type: str, gpus: int, baseline: Baseline | None = None) -> Point:
    return Point(
        gpu_type=gpu_type,
        dtype="bf16",
        gpus=gpus,
        model=None,
        seq_len=8,
        parallelism=Parallelism(global_batch_size=gpus),
        baseline=baseline,
    )


RECIPE = Recipe(
    address="acme/moe@26.06",
    framework="acme",
    release="26.06.01",
    description="",
    source="",
    model=None,
    seq_len=8,
    mfu_from="logged",
    window="last",
    steps=50,
    time_limit_s=60,
    memory_gb=None,
    image=None,
    points=(point("h100", 8, MEASURED), point("h100", 16), point("b200", 8)),
)


def at(address: str, release: str) -> Recipe:
    return attrs.evolve(RECIPE, address=f"acme/{address}@{release}", release=release)


def gpus_of(where: PointFilter, recipe: Recipe = RECIPE) -> list[tuple[str, int]] | None:
    narrowed = where.narrow(recipe)
    return None if narrowed is None else [(each.gpu_type, each.gpus) for each in narrowed.points]


def test_all_filters_must_fit_one_point() -> None:
    assert gpus_of(PointFilter(gpu_type="h100")) == [("h100", 8), ("h100", 16)]
    assert gpus_of(PointFilter(gpu_type="h100", gpus=16)) == [("h100", 16)]
    assert gpus_of(PointFilter(gpus=8, with_baseline=True)) == [("h100", 8)]
    assert gpus_of(PointFilter(gpu_type="b200", with_baseline=True)) is None
    assert gpus_of(PointFilter(framework="other")) is None
    assert gpus_of(PointFilter(framework="acme")) == [("h100", 8), ("h100", 16), ("b200", 8)]


def test_a_recipe_for_any_gpu_needs_no_point() -> None:
    rule = ScalingRule(condition="any", degrees={"global_batch_size": 8})
    anywhere = attrs.evolve(RECIPE, points=(), rule=rule, dtypes=("bf16",))
    assert gpus_of(PointFilter(gpu_type="gb300", gpus=72), anywhere) == []
    assert gpus_of(PointFilter(dtype="fp8"), anywhere) is None
    assert gpus_of(PointFilter(with_baseline=True), anywhere) is None


def test_releases_are_ordered_by_their_numbers() -> None:
    recipes = [at("a", "9.1"), at("b", "25.12"), at("a", "25.12"), at("c", "25.9")]
    assert [each.address for each in newest_first(recipes)] == [
        *("acme/a@25.12", "acme/b@25.12", "acme/c@25.9", "acme/a@9.1")
    ]


def test_a_release_of_thousands_of_digits_breaks_no_list() -> None:
    newest, _ = newest_first([at("a", "1"), at("b", "9" * 5000)])
    assert newest.release == "9" * 5000


def test_older_releases_of_a_recipe_are_folded_into_the_newest() -> None:
    recipes = newest_first([at("a", "9.1"), at("b", "25.12"), at("a", "25.12"), at("a", "24.11")])
    folded = [(recipe.address, older) for recipe, older in fold_releases(recipes)]
    assert folded == [("acme/a@25.12", ("24.11", "9.1")), ("acme/b@25.12", ())]
