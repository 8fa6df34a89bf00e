"""Reading recipes: the values of a file, and all errors of an invalid file together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from llmb.analysis.flops import flops_per_sequence
from llmb.recipes.read_recipe import parse_recipe, read_recipe, with_shared
from llmb.values.environment import Image
from llmb.values.errors import Fault, RecipeError
from llmb.values.frozen import FrozenMap
from llmb.values.model import Model, Parallelism
from llmb.values.recipe import Baseline, Recipe
from llmb.values.types.check_types import encode

HEAD = """
release = "1.0"
description = "an invented mixture of experts"
source = "a README"
flop_formula = "causal"
mfu_from = "logged"
window = [35, 44]
steps = 50
profile_steps = {{ nccl-trace = 10 }}
time_limit = "1h30m"
memory_gb = 80

[image]
ref = "registry.example/train:1"
digest = "sha256:{digest}"

[model]
layers = 16
hidden = 64
ffn = 128
heads = 8
query_groups = 4
vocab = 1000
seq_len = 2048
experts = 8
top_k = 2

[framework]
arguments = ["--common"]
[framework.env]
COMMON = "1"
CHUNK = "small"
""".format(digest="0" * 64)

POINTS = """
[[points]]
gpu_type = ["h100", "b200"]
dtype = ["bf16", "fp8"]
gpus = [64, 128]
tp = 4
pp = 2
vp = 8
ep = 8
fsdp = "gpus / 8"
micro_batch_size = 2
global_batch_size = "2 * gpus"
recompute_layers = 5
offload_layers = 1
cuda_graphs = true

[[points]]
gpu_type = "h100"
dtype = "bf16"
gpus = 8
tp = 4
vp = 1
ep = 2
global_batch_size = 32
proxy = true
model = { layers = 2, seq_len = 1024 }
framework = { env = { CHUNK = "large" }, arguments = [] }
"""

BASELINES = """
[[baselines]]
gpu_type = "h100"
dtype = "bf16"
gpus = [8, 64]
step_time_s = [24.03, 20]
mfu_percent = [45.4, nan]
notes = { 64 = "one node was replaced" }

[[baselines]]
gpu_type = "h100"
dtype = "fp8"
gpus = 128
step_time_s = 10.5
tokens_per_s = 400000
days_per_1t_tokens = 28.9
release = "1.1"
source = "another README"
"""


def read(text: str, shared: Mapping[str, str] = FrozenMap()) -> Recipe:
    tables = with_shared(parse_recipe(text, "moe.toml"), shared, "moe.toml")
    return read_recipe(tables, address="acme/moe@1.0", framework="acme", file="moe.toml")


def errors_of(text: str) -> tuple[Fault, ...]:
    with pytest.raises(RecipeError) as caught:
        read(text)
    assert {error.file for error in caught.value.faults} == {"moe.toml"}
    return caught.value.faults


def test_a_recipe_has_the_values_of_its_file() -> None:
    recipe = read(HEAD + POINTS)
    assert (recipe.address, recipe.framework, recipe.release) == ("acme/moe@1.0", "acme", "1.0")
    assert (recipe.flop_formula, recipe.mfu_from, recipe.window) == ("causal", "logged", (35, 44))
    assert (recipe.steps, recipe.time_limit_s, recipe.memory_gb) == (50, 5400, 80)
    assert recipe.profile_steps == {"nccl-trace": 10}
    assert recipe.image == Image(ref="registry.example/train:1", digest="sha256:" + 64 * "0")
    assert recipe.model == Model(
        layers=16, hidden=64, ffn=128, heads=8, query_groups=4, vocab=1000, seq_len=2048, experts=8, top_k=2
    )


def test_lists_expand_to_every_combination() -> None:
    recipe = read(HEAD + POINTS)
    assert [(point.gpu_type, point.dtype, point.gpus) for point in recipe.points] == [
        *((gpu_type, dtype, gpus) for gpu_type in ("h100", "b200") for gpus in (64, 128) for dtype in ("bf16", "fp8")),
        ("h100", "bf16", 8),
    ]


def test_rules_follow_the_number_of_gpus() -> None:
    point = read(HEAD + POINTS).find("b200", "fp8", 128)
    assert point is not None
    assert point.parallelism == Parallelism(
        tp=4, pp=2, vp=8, ep=8, fsdp=16, micro_batch_size=2, global_batch_size=256
    )  # fmt: skip
    assert (point.recompute_layers, point.offload_layers, point.cuda_graphs, point.proxy) == (5, 1, True, False)


def test_a_point_may_have_a_smaller_model_and_settings_of_its_own() -> None:
    recipe = read(HEAD + POINTS)
    point, other = recipe.find("h100", "bf16", 8), recipe.find("h100", "bf16", 64)
    assert point is not None
    assert other is not None
    assert point.proxy
    assert point.model == attrs.evolve(recipe.model, layers=2, seq_len=1024)
    assert point.parallelism.vp is None  # 1 is off
    assert encode(point.settings) == {"arguments": [], "env": {"COMMON": "1", "CHUNK": "large"}}
    assert other.model == recipe.model
    assert encode(other.settings) == {"arguments": ["--common"], "env": {"COMMON": "1", "CHUNK": "small"}}
    assert isinstance(other.settings["env"], FrozenMap)


def test_a_point_of_the_complete_model_may_have_other_sequences() -> None:
    recipe = read((HEAD + POINTS).replace("proxy = true\n", "").replace("layers = 2, seq_len", "seq_len"))
    point, proxy = recipe.find("h100", "bf16", 8), read(HEAD + POINTS).find("h100", "bf16", 8)
    assert point is not None
    assert proxy is not None
    assert (point.seq_len, recipe.published_model(point)) == (1024, attrs.evolve(recipe.model, seq_len=1024))
    assert recipe.published_model(proxy) == recipe.model


def test_a_recipe_is_a_value() -> None:
    assert hash(read(HEAD + POINTS + BASELINES)) == hash(read(HEAD + POINTS + BASELINES))


def test_what_recipes_share_comes_below_their_own() -> None:
    shared = {
        "release": 'release = "0.9"\nmfu_from = "logged"\n[framework.env]\nCOMMON = "0"\nCHUNK = "none"',
        "model": '[model]\nlayers = 99\nhidden = 64\n[framework.env]\nCHUNK = "tiny"\nMORE = "1"',
        "unused": "not TOML",
    }
    own = HEAD.replace('mfu_from = "logged"', "").replace("hidden = 64", "").replace('CHUNK = "small"', "") + POINTS
    recipe = read('shared = ["release", "model"]' + own, shared)
    assert (recipe.release, recipe.mfu_from) == ("1.0", "logged")
    assert (recipe.model.layers, recipe.model.hidden) == (16, 64)
    assert encode(recipe.points[0].settings["env"]) == {"COMMON": "1", "CHUNK": "tiny", "MORE": "1"}


@pytest.mark.parametrize(
    ("line", "file", "message"),
    [
        ('shared = "nemo"', "moe.toml", "shared: invalid value \"nemo\"; expected a list of names of shared files"),
        ('shared = ["modle"]', "moe.toml", "shared[0]: invalid value \"modle\"; expected one of broken, model"),
        ('shared = [["model"]]', "moe.toml", "shared[0]: invalid value [\"model\"]; expected one of broken, model"),
        ('shared = ["model", "broken"]', "shared/broken.toml", "invalid TOML"),
    ],
)  # fmt: skip
def test_a_missing_or_invalid_shared_file_is_an_error(line: str, file: str, message: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(f"{file}: {message}")):
        read(line + HEAD + POINTS, {"model": "", "broken": "="})


VARIANT = """
[[points]]
gpu_type = "h100"
dtype = "fp8"
gpus = 128
tp = 2
ep = 8
global_batch_size = 256
variant = "mxfp8"
options = { scaling = "mx" }
"""


def test_points_of_one_number_of_gpus_are_variants_of_which_the_first_is_the_default() -> None:
    recipe = read(HEAD + POINTS + VARIANT + BASELINES)
    *usual, variant = recipe.points
    assert tuple(usual) == read(HEAD + POINTS + BASELINES).points
    assert (variant.variant, dict(variant.options), variant.baseline) == ("mxfp8", {"scaling": "mx"}, None)
    named = (variant.gpu_type, variant.dtype, variant.gpus)
    assert recipe.find(*named, variant="mxfp8") == variant
    assert recipe.find(*named) in usual
    assert recipe.find(*named, variant="nvfp4") is None


def test_a_publisher_may_state_tflops_of_a_variant() -> None:
    stated = '[[baselines]]\ngpu_type = "h100"\ndtype = "fp8"\nvariant = "mxfp8"\ngpus = 128\ntflops_per_gpu = 500\n'
    recipe = read(HEAD + POINTS + VARIANT + stated)
    point = recipe.find("h100", "fp8", 128, variant="mxfp8")
    assert point is not None
    assert point.baseline is not None
    flops = flops_per_sequence(point.model, "causal") * point.parallelism.global_batch_size
    assert point.baseline.tflops_per_gpu == 500
    assert point.baseline.step_time_s == pytest.approx(flops / (128 * 500e12))
    assert point.baseline.tokens_per_s == pytest.approx(256 * 2048 / point.baseline.step_time_s)
    assert [each.variant for each in recipe.points if each.baseline] == ["mxfp8"]


def test_settings_and_fixes_change_the_settings_of_points() -> None:
    more = """
[[settings]]
gpu_type = "b200"
framework.env = { B200 = "1" }
[fixes."1.0.1"]
[fixes."1.0.2"]
settings = []
"""
    tables = parse_recipe(HEAD + POINTS + more, "f.toml")
    env_of = {}
    for release in ("1.0", "1.0.1", "1.0.2", None):
        recipe = read_recipe(tables, address="a/b", framework="a", file="f.toml", release=release)
        env_of[recipe.release] = {point.gpu_type for point in recipe.points if "B200" in point.settings["env"]}
        assert recipe.releases == ("1.0", "1.0.1", "1.0.2")
    assert env_of == {"1.0": {"b200"}, "1.0.1": {"b200"}, "1.0.2": set()}


def test_baselines_are_attached_to_their_points() -> None:
    recipe = read(HEAD + POINTS + BASELINES)
    found = {(each.gpu_type, each.dtype, each.gpus): each.baseline for each in recipe.points if each.baseline}
    assert found == {
        ("h100", "bf16", 8): Baseline(step_time_s=24.03, mfu=0.454, release="1.0", source="a README"),
        ("h100", "bf16", 64): Baseline(
            step_time_s=20, release="1.0", source="a README", note="one node was replaced"
        ),
        ("h100", "fp8", 128): Baseline(
            step_time_s=10.5,
            tokens_per_s=400_000,
            days_per_1t_tokens=28.9,
            release="1.1",
            source="another README",
        ),
    }  # fmt: skip


def test_a_publisher_may_state_the_tokens_that_one_gpu_takes_in_a_second() -> None:
    rates = BASELINES.replace("step_time_s = [24.03, 20]", "tokens_per_s_per_gpu = [512, 400]")
    [baseline] = [each.baseline for each in read(HEAD + POINTS + rates).points if each.gpus == 8]
    assert baseline is not None
    assert baseline.tokens_per_s == 8 * 512
    assert baseline.step_time_s == 32 * 1024 / (8 * 512)
    assert baseline.mfu == 0.454


def test_what_may_be_left_out() -> None:
    optional = ("mfu_from", "profile_steps", "memory_gb", "[image]", "ref", "digest", "experts", "top_k")
    text = "\n".join(line for line in HEAD.splitlines() if not line.startswith(optional))
    recipe = read(text + POINTS.replace("ep = 8\n", "").replace("ep = 2\n", ""))
    assert (recipe.mfu_from, recipe.memory_gb, recipe.image) == ("step time", None, None)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('source = "a README"\n', "", "source: required key is missing"),
        ('release = "1.0"', 'realease = "1.0"', "(did you mean 'release'?)"),
        ("steps = 50", 'steps = "50"', 'steps: invalid value "50"; expected a positive integer'),
        ("steps = 50", "steps = true", "steps: invalid value true; expected a positive integer"),
        ("steps = 50", "steps = 40", "window: the window ends at step 44 of 40; expected at most 40, or 39"),
        ("nccl-trace = 10", "nccl = 10", 'profile_steps.nccl: invalid value "nccl"; expected "nsys" or "nccl-trace"'),
        ("nccl-trace = 10", "nsys = 0", "profile_steps.nsys: invalid value 0; expected a positive integer"),
        ("[35, 44]", "[44, 35]", "window: invalid value [44, 35]; expected"),
        ("[35, 44]", '"first"', 'window: invalid value "first"; expected "last" or [first, last]'),
        ('"causal"', '"casual"', 'flop_formula: invalid value "casual"; expected "full" or "causal" or'),
        ('"logged"', '"log"', 'mfu_from: invalid value "log"; expected "step time" or "logged"'),
        ('"1h30m"', '"soon"', 'time_limit: invalid value "soon"; expected a duration'),
        ("memory_gb = 80", "memory_gb = nan", "memory_gb: invalid value nan; expected a positive number"),
        ("sha256:0", "sha256:x", "image.digest: invalid value"),
        ("layers = 16", "layer = 16", "model.layer: unknown key"),
        ("layers = 16", "layers = -1", "model.layers: invalid value -1; expected a positive integer"),
        ("query_groups = 4", "query_groups = 5", "model.query_groups: 8 heads are not divisible by 5 query groups"),
        ("top_k = 2", "top_k = 9", "model.top_k: 9 experts per token are more than the model's 8"),
        ("tp = 4", "tp = 3", "points[0].tp: 8 heads are not divisible by tp = 3 (on 64 GPUs)"),
        ("pp = 2", "pp = 3", "points[0].model.layers: 16 layers are not divisible by pp x vp = 3 x 8 = 24"),
        ("ep = 8", "ep = 3", "points[0].ep: 8 experts are not divisible by ep = 3 (on 64 GPUs)"),
        ("pp = 2", "pp = 2\ncp = 3", "points[0].gpus: 64 GPUs are not divisible by tp x pp x cp = 4 x 2 x 3 = 24"),
        ('"gpus / 8"', '"gpus / 7"', 'points[0].fsdp: "gpus / 7" is 9.14286 on 64 GPUs'),
        ('"2 * gpus"', '"2 * pods"', 'points[0].global_batch_size: invalid value "2 * pods"; expected a positive'),
        ("proxy = true", 'other_gpus = "some"', 'points[1].other_gpus: invalid value "some"; expected "any", or a'),
        ("micro_batch_size = 2", "micro_batch_size = 3", "points[0].global_batch_size: global batch 128 is not"),
        ("global_batch_size = 32\n", "", "points[1].global_batch_size: required key is missing"),
        ("proxy = true", 'proxy = "yes"', 'points[1].proxy: invalid value "yes"; expected true or false'),
        ("recompute_layers = 5", "recompute_layers = -1", "points[0].recompute_layers: invalid value -1; expected"),
        ("{ layers = 2, ", "{ layres = 2, ", "points[1].model.layres: unknown key"),
        ("{ layers = 2, ", "{ query_groups = 3, ", "points[1].model.query_groups: 8 heads are not divisible"),
        ("gpus = [64, 128]", "gpus = [64, 64]", "points[0].gpus: invalid value [64, 64]; expected each value once"),
        ("gpus = [64, 128]", "gpus = []", "points[0].gpus: invalid value []; expected a list with at least one item"),
        ("gpus = 8\n", "gpus = 64\n", "points[1]: h100 bf16 on 64 GPUs is already in points[0]"),
        ('"bf16", "fp8"]', '"bf16", "BFloat16"]', 'points[0].dtype: unknown dtype "BFloat16"; expected one of'),
        ('"bf16", "fp8"]', '"bf16", "bfloat16"]', "(did you mean 'bf16'?)"),
        ("gpus = 128\n", "gpus = 256\n", "baselines[1].gpus: h100 fp8 on 256 GPUs is not a point of this recipe"),
        ("[24.03, 20]", "[24.03]", "baselines[0].step_time_s: 1 value; expected 2, one for each of gpus"),
        ("[24.03, 20]", "[24.03, 0]", "baselines[0].step_time_s: invalid value [24.03, 0]; expected a positive number"),
        ("step_time_s = [24.03, 20]\n", "", "baselines[0].step_time_s: required key is missing; expected one of"),
        ("notes = { 64", "notes = { 65", "baselines[0].notes.65: not one of gpus"),
        (BASELINES[BASELINES.index('"fp8"'):], '"bf16"\ngpus = 64\nstep_time_s = 7\n',
         "h100 bf16 on 64 GPUs already has a baseline of release 1.0 in baselines[0]"),
    ],
)  # fmt: skip
def test_an_error_names_its_place_and_the_expected_value(old: str, new: str, error: str) -> None:
    whole = HEAD + POINTS + BASELINES
    assert old in whole
    lines = [str(each) for each in errors_of(whole.replace(old, new, 1))]
    assert any(error in line for line in lines), lines


@pytest.mark.parametrize("condition", ["any", "nodes < 64"])
def test_two_tables_with_rules_for_the_same_numbers_of_gpus_are_an_error(condition: str) -> None:
    text = HEAD + POINTS.replace("proxy = true\n", "").replace("gpus = ", f'other_gpus = "{condition}"\ngpus = ')
    text = text.replace("{ layers = 2, seq_len = 1024 }", "{}")
    (error,) = errors_of(text)
    assert f'points[1].other_gpus: h100 bf16 with other_gpus = "{condition}" is already in points[0]' in str(error)
    read(text.replace(condition, "nodes >= 64", 1))


def test_another_spelling_of_a_dtype_is_an_error_of_the_recipe_without_points() -> None:
    (error,) = errors_of(OPEN.replace('"bf16"', '"bfloat16"'))
    assert str(error).startswith('moe.toml: dtypes: unknown dtype "bfloat16"; expected one of bf16, fp8')
    assert str(error).endswith("(did you mean 'bf16'?)")
    read(OPEN.replace('"bf16"', '"int8"'))


def test_all_errors_are_reported_together() -> None:
    text = HEAD.replace("steps = 50", "steps = 0").replace("hidden = 64\n", "") + POINTS.replace("tp = 4", "tq = 4", 1)
    assert [error.key for error in errors_of(text)] == ["steps", "model.hidden", "points[0].tq"]


def test_invalid_toml_is_reported_with_its_line() -> None:
    (error,) = errors_of("release = \n")
    assert "line 1" in error.message


def test_a_recipe_without_points_needs_a_batch_size() -> None:
    (error,) = errors_of(HEAD)
    expected = 'expected a number or a rule such as "8 * gpus", or tables [[points]]'
    assert str(error) == f"moe.toml: global_batch_size: required key is missing; {expected}"


OPEN = """
release = "1.0"
description = "a training script"
source = "its author"
window = "last"
steps = 20
time_limit = "1h"
seq_len = 128
params = 50e3
dtypes = ["fp32", "bf16"]
global_batch_size = "8 * gpus"
"""


def test_a_recipe_without_points_or_architecture_states_its_flops_per_token() -> None:
    recipe = read(OPEN)
    assert (recipe.model, recipe.flop_formula, recipe.points) == (None, None, ())
    assert (recipe.seq_len, recipe.flops_per_token, recipe.dtypes) == (128, 6 * 50e3, ("fp32", "bf16"))
    assert read(OPEN.replace("params = 50e3", "params = 50e3\nactive_params = 10e3")).flops_per_token == 60e3
    assert read(OPEN.replace("params = 50e3", "flops_per_token = 7")).flops_per_token == 7
    assert read(OPEN.replace("params = 50e3", "")).flops_per_token is None


def test_a_baseline_of_a_recipe_without_points_is_a_published_configuration() -> None:
    row = '[[baselines]]\ngpu_type = "h100"\ndtype = "bf16"\ngpus = [8, 16]\nstep_time_s = [0.5, 0.25]\n'
    point = read(OPEN + row).find("h100", "bf16", 16)
    assert point
    assert point.parallelism.global_batch_size == 128
    assert point.baseline
    assert point.baseline.step_time_s == 0.25


def test_a_baseline_of_a_recipe_without_points_has_one_of_its_dtypes() -> None:
    row = '[[baselines]]\ngpu_type = "h100"\ndtype = "fp8"\ngpus = 8\nstep_time_s = 0.5\n'
    [error] = errors_of(OPEN + row)
    assert str(error).endswith("baselines[0].dtype: fp8 is not a dtype of this recipe; expected fp32 or bf16")


def test_a_baseline_of_a_recipe_without_points_has_no_variant() -> None:
    row = '[[baselines]]\ngpu_type = "h100"\ndtype = "bf16"\nvariant = "v1"\ngpus = 8\nstep_time_s = 0.5\n'
    [error] = errors_of(OPEN + row)
    assert "baselines[0].variant: a recipe without [[points]] has no variants; " in str(error)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("seq_len = 128", "", "seq_len: required key is missing"),
        ("params = 50e3", "params = 1\nflops_per_token = 6", "params and flops_per_token both state the FLOPs"),
        ("params = 50e3", "active_params = 1", "params: required key is missing"),
        ("params = 50e3", "params = 5\nactive_params = 6", "active_params: 6 of 5 parameters; expected at most 5"),
        (
            "params = 50e3",
            'flop_formula = "full"',
            "model: required key is missing; expected both model and",
        ),
    ],
)
def test_sizes_that_contradict_each_other_are_errors(old: str, new: str, error: str) -> None:
    assert error in " ".join(map(str, errors_of(OPEN.replace(old, new))))


def test_the_layout_in_the_documentation_is_one_that_can_be_read() -> None:
    page = Path(__file__).parents[3].joinpath("docs/recipes.md").read_text(encoding="utf-8")
    layout = page.partition("```toml\n")[2].partition("```")[0]
    layout = layout.replace("{ ... }", '{ any = "thing" }').replace("sha256:...", "sha256:" + 64 * "0")
    sizes = "layers = 80\nhidden = 8192\nffn = 28672\nheads = 64\nquery_groups = 8\nvocab = 32000\nseq_len = 4096\n"
    recipe = read(layout.replace("[model]", f"[model]\n{sizes}", 1), {"common": ""})
    assert len(recipe.points) == 4


GPT_OSS = (
    HEAD.replace('"causal"', '"megatron-bridge-0.1"').replace("top_k = 2", 'top_k = 2\nactivation = "quick-gelu"')
    + POINTS
)
NEWER = '[[baselines]]\ngpu_type = "h100"\ndtype = "bf16"\ngpus = 64\nflop_formula = "megatron-bridge-0.5"\n'


def test_tflops_of_another_formula_are_no_baseline() -> None:
    [error] = errors_of(f"{GPT_OSS}{NEWER}tflops_per_gpu = 500\n")
    assert error.key == "baselines[0].flop_formula"
    assert "megatron-bridge-0.5 counts +9.1 %" in error.message
    [point] = [each for each in read(f"{GPT_OSS}{NEWER}step_time_s = 20\n").points if each.baseline]
    assert point.baseline is not None
    assert point.baseline.step_time_s == 20


def test_tflops_give_no_step_time_without_the_flops_of_a_step() -> None:
    head = 'release = "1"\ndescription = "d"\nsource = "s"\nwindow = "last"\nsteps = 9\ntime_limit = 9\nseq_len = 128\n'
    point = '[[points]]\ngpu_type = "h100"\ndtype = "bf16"\ngpus = 8\nglobal_batch_size = 8\n'
    row = '[[baselines]]\ngpu_type = "h100"\ndtype = "bf16"\ngpus = 8\ntflops_per_gpu = 400\n'
    [error] = errors_of(f"{head}{point}{row}")
    assert error.key == "baselines[0].tflops_per_gpu"
    assert "the recipe states no FLOPs" in error.message
    [known] = read(f"{head}flops_per_token = 6e9\n{point}{row}").points
    assert known.baseline is not None
    assert known.baseline.step_time_s == pytest.approx(8 * 128 * 6e9 / (8 * 400e12))
    [timed] = read(f"{head}{point}{row}step_time_s = 2\n").points
    assert timed.baseline is not None
    assert (timed.baseline.step_time_s, timed.baseline.tflops_per_gpu) == (2, 400)


def test_a_formula_that_counts_the_same_flops_is_comparable() -> None:
    text = f"{HEAD}{POINTS}{NEWER}tflops_per_gpu = 500\n"
    assert [point.gpus for point in read(text).points if point.baseline] == [64]


def test_results_of_other_releases_are_kept_beside_the_baseline() -> None:
    [point] = [
        each
        for each in read(f"{HEAD}{POINTS}{BASELINES}{NEWER}release = '2.0'\nstep_time_s = 19\n").points
        if each.other_baselines
    ]
    assert point.baseline is not None
    assert (point.baseline.step_time_s, point.baseline.release) == (20, "1.0")
    assert [(each.step_time_s, each.release) for each in point.other_baselines] == [(19, "2.0")]
