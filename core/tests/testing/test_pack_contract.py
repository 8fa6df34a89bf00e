"""Planted errors in packs: each fails its test of `PackContract` with a message, and no other test."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from parts.contract_failures import find_failures

from llmb.plugins.registry import PluginRegistry
from llmb.testing import PackContract
from llmb.testing.job_checks import check_mfus
from llmb.values.errors import PluginWarning

pytestmark = pytest.mark.filterwarnings("default::llmb.PluginWarning")

FRAMEWORK = """
command = ["true", "{steps}", "{global_batch_size}", "{seq_len}", "{dtype}"]
log.line = "iter {step}: {time_s} s"
[recipe]
steps = 3
seq_len = 8
global_batch_size = "gpus"
"""
RECIPE = """
release = "1"
description = "a recipe of a pack"
source = "https://example.com/results"
window = "last"
steps = 7
time_limit = "1h"
seq_len = 2048
params = 7e9
image.ref = "registry.example/acme:1.2"
image.digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
[[points]]
gpu_type = "h100"
dtype = "bf16"
gpus = 8
global_batch_size = 96
[[baselines]]
gpu_type = "h100"
dtype = "bf16"
gpus = 8
step_time_s = 3.28
tokens_per_s = 59900
"""
ACCELERATORS = """
[npu7]
gpus_per_node = 4
peak_flops = { bf16 = 362.05e12 }
source = "Acme NPU 7 data sheet"
"""
SIGNATURES = """
[[signatures]]
needle = "acme: link down"
cause = "a link failed"
"""
FILES = {
    "frameworks/acmelm.toml": FRAMEWORK,
    "recipes/acmelm/big.toml": RECIPE,
    "accelerators.toml": ACCELERATORS,
    "signatures.toml": SIGNATURES,
}
OF_RECIPE, OF_FRAMEWORK = "recipes/acmelm/big.toml", "frameworks/acmelm.toml"
DIGEST = next(line for line in RECIPE.splitlines() if line.startswith("image.digest"))


@attrs.frozen
class Planted:
    """An error: the test that fails, a file, the replaced text and its replacement, and a part of the message."""

    test: str
    file: str
    old: str
    new: str
    message: str


PLANTED = [
    Planted("files_are_valid", "accelerators.toml", "gpus_per_node", "gpus_per_nod", "gpus_per_nod"),
    Planted("files_are_valid", "signatures.toml", "cause", "case", "cause"),
    Planted("recipes_are_valid", OF_RECIPE, "steps = 7", "stpes = 7", "stpes"),
    Planted("frameworks_are_valid", OF_FRAMEWORK, "seq_len = 8", "seq_len = -8", "recipe.seq_len: invalid value -8"),
    Planted("published_points_build_jobs", OF_RECIPE, "gpus = 8\nglobal", "gpus = [8, 12]\nglobal", "12"),
    Planted(
        "metrics_are_plausible", OF_RECIPE, "7e9", "7e10",
        "acmelm/big (h100 bf16, 8 GPUs): MFU of 3.18 is impossible; check the model, the global batch",
    ),
    Planted(
        "metrics_are_plausible", OF_RECIPE, "tokens_per_s", "mfu_percent = 0.318\ntokens_per_s",
        "mfu_percent = 0.318, but 31.8 % follow from the step time; check the unit, or explain the difference",
    ),
    Planted(
        "baselines_are_consistent", OF_RECIPE, "tokens_per_s", "days_per_1t_tokens = 5\ntokens_per_s",
        "days_per_1t_tokens = 5, but 193 days follow from 3.28 s; check the numbers",
    ),
    Planted("recipes_are_valid", OF_RECIPE, "step_time_s = 3.28", "step_time_s = 3280", "not milliseconds"),
    Planted(
        "baselines_are_consistent", OF_RECIPE, "59900", "61000",
        "61000 tokens/s x 3.28 s are 200080 tokens, but a step has 196608; check the numbers and global_batch_size",
    ),
    Planted(
        "numbers_have_sources", OF_RECIPE, "https://example.com/results", "x",
        "acmelm/big: source 'x' names no document; write its address, or its publisher and title",
    ),
    Planted("numbers_have_sources", OF_RECIPE, "step_time_s", "source = 'blog'\nstep_time_s", "the baseline of acmelm"),
    Planted("numbers_have_sources", "accelerators.toml", "Acme NPU 7 data sheet", "x", "npu7: source 'x' names"),
    Planted(
        "images_are_pinned", OF_RECIPE, f'acme:1.2"\n{DIGEST}', 'acme:dev"',
        "acmelm/big: the tag of registry.example/acme:dev names other images later; add the digest of the image",
    ),
    Planted("images_are_pinned", OF_RECIPE, f'example/acme:1.2"\n{DIGEST}', 'example:5000/acme"', "add the digest"),
    Planted("frameworks_are_valid", OF_FRAMEWORK, '"iter {step}:', '"{step}{loss}', "acmelm: "),
    Planted("frameworks_are_valid", OF_FRAMEWORK, '"{steps}"', '"$SLURM_PROCID", "{steps}"', "reads SLURM_PROCID"),
]  # fmt: skip


def install(site: Any, files: dict[str, str], pack: str = "acme") -> None:
    contents = {f"{pack}_llmb/{path}": text for path, text in files.items()}
    contents[f"{pack}_llmb/__init__.py"] = 'raise SystemExit("a pack is never imported")'
    site.install(f"llmb-{pack}", files=contents, entry_points={"llmb.packs": {pack: f"{pack}_llmb"}})


def failures() -> dict[str, str]:
    """Run the contract tests of the pack ``acme``. Return the messages of those that fail, by name."""

    class TestAcme(PackContract):
        pack = "acme"

    return find_failures(TestAcme())


def test_a_correct_pack_passes(active_site: Any) -> None:
    install(active_site, FILES)
    assert failures() == {}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: f"{planted.test}-{planted.new[:12]}")
def test_a_planted_error_fails_its_test_and_no_other(active_site: Any, planted: Planted) -> None:
    assert planted.old in FILES[planted.file]
    install(active_site, {**FILES, planted.file: FILES[planted.file].replace(planted.old, planted.new)})
    found = failures()
    assert set(found) == {planted.test}, found
    assert planted.message in found[planted.test]


@pytest.mark.parametrize(("file", "message"), [(OF_RECIPE, "is defined in"), (OF_FRAMEWORK, "is provided by")])
def test_an_address_of_another_pack_is_an_error(active_site: Any, file: str, message: str) -> None:
    install(active_site, FILES)
    install(active_site, {file: FILES[file]}, "other")
    found = failures()
    assert set(found) == {"addresses_are_unique"}, found
    for part in (message, "acme_llmb/", "other_llmb/"):
        assert part in found["addresses_are_unique"]


def test_a_recipe_of_a_missing_framework_is_checked_without_its_jobs(active_site: Any) -> None:
    install(active_site, {"recipes/missing/big.toml": RECIPE})
    assert failures() == {}

    class TestAcme(PackContract):
        pack = "acme"

    with pytest.raises(pytest.skip.Exception, match="not installed: missing; install the framework to test its"):
        TestAcme().test_published_points_build_jobs()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step_time_s": 1e-12}, "a step time of 1e-12 s is impossible; check the unit"),
        ({"step_time_s": 3280.0}, "MFU of 0.0009 is implausible; check the unit"),
    ],
)
def test_a_baseline_of_a_gpu_type_of_a_pack_has_a_plausible_unit(
    active_site: Any, change: dict[str, float], message: str
) -> None:
    install(active_site, FILES)
    registry = PluginRegistry()
    recipe = registry.recipe("acmelm/big")
    [point] = recipe.points
    assert point.baseline
    point = attrs.evolve(point, gpu_type="npu7", baseline=attrs.evolve(point.baseline, **change))
    with pytest.raises(pytest.fail.Exception, match=message):
        check_mfus(registry, [attrs.evolve(recipe, points=(point,))])


def test_a_misspelt_framework_of_recipes_is_a_warning(active_site: Any) -> None:
    install(active_site, {"recipes/maxtxt/big.toml": RECIPE})
    with pytest.warns(
        PluginWarning, match=r"recipes/maxtxt: no framework of this name is installed; did you mean 'maxtext'"
    ):
        assert failures() == {}


def test_a_tag_of_a_version_without_digest_is_a_warning(active_site: Any) -> None:
    install(active_site, {**FILES, OF_RECIPE: RECIPE.replace(DIGEST, "")})
    with pytest.warns(PluginWarning, match=r"acmelm/big: registry\.example/acme:1\.2 has no digest; add it"):
        assert failures() == {}


def test_an_empty_pack_is_an_error(active_site: Any) -> None:
    install(active_site, {})
    assert "contains no data" in failures()["files_are_valid"]
