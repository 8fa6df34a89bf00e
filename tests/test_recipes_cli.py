"""``llmb metrics`` and ``llmb recipes``, as text and as JSON."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

BASELINES = Path(__file__).parents[1] / "core" / "tests" / "analysis" / "baselines.csv"
ALL_ROWS = list(csv.DictReader(BASELINES.read_text().splitlines()))
ROWS = [row for row in ALL_ROWS if row["framework"] == "maxtext"]
CONTRADICTORY = ("llama3.1-70b", "bf16", "2048")  # published with 14.98 s, but its other metrics follow from 14.92 s

METRICS_KEYS = [
    *(
        "step_time_s",
        "tokens_per_s",
        "tokens_per_s_per_gpu",
        "model_tflops_per_gpu",
        "mfu",
        "mfu_computed",
        "mfu_logged",
    ),
    *("days_per_1t_tokens", "flops_per_sequence", "peak_flops", "global_batch_size", "seq_len", "baseline"),
]
BASELINE_KEYS = [
    *("step_time_s", "tokens_per_s", "mfu", "days_per_1t_tokens", "tflops_per_gpu", "step_time_ratio"),
    *("release", "source"),
]
MODEL_KEYS = ["layers", "hidden", "ffn", "heads", "query_groups", "vocab", "experts", "top_k"]
POINT_KEYS = [
    *("gpu_type", "dtype", "gpus", "variant", "layers", "seq_len", "global_batch_size", "micro_batch_size"),
    *("gradient_accumulation", "proxy", "parallelism", "recompute_layers", "offload_layers", "cuda_graphs"),
    *("baseline", "other_baselines"),
]


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


# Metrics


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: f"{row['recipe']}-{row['dtype']}-{row['gpus']}")
def test_the_published_metrics_follow_from_the_published_step_times(llmb: Llmb, row: dict[str, str]) -> None:
    point = ("--gpu-type", row["gpu"], "--dtype", row["dtype"], "--gpus", row["gpus"])
    contradictory = (row["recipe"], row["dtype"], row["gpus"]) == CONTRADICTORY
    step_time_s = "14.92" if contradictory else row["step_time_s"]
    answer = llmb("metrics", f"{row['framework']}/{row['recipe']}", *point, "--step-time", step_time_s, "--json")
    metrics = answer.json

    assert answer.status == 0
    assert metrics["tokens_per_s"] == rounded(row["tokens_per_s"])
    if row["mfu_percent"]:
        assert metrics["mfu"] == pytest.approx(float(row["mfu_percent"]) / 100, abs=0.001)
    assert metrics["days_per_1t_tokens"] == rounded(row["days_per_1t_tokens"])
    assert metrics["global_batch_size"] == int(row["global_batch_size"])
    assert metrics["seq_len"] == int(row["seq_len"])
    assert (metrics["baseline"]["step_time_ratio"] == 1.0) is not contradictory
    assert metrics["baseline"]["tokens_per_s"] == float(row["tokens_per_s"])


def rounded(text: str) -> object:
    """Return a value that equals all numbers that round to this text. Return None for an empty text."""
    if not text:
        return None
    decimals = len(text.partition(".")[2])
    return pytest.approx(float(text), abs=0.51 * 10.0**-decimals)


def test_no_row_is_missing() -> None:
    assert (len(ROWS), len(ALL_ROWS)) == (12, 52)


def test_a_row_that_contradicts_itself_is_shown_as_such(llmb: Llmb) -> None:
    assert "note: h100 bf16 on 2048 GPUs contradicts itself" in llmb("recipes", "nemo_launcher/llama3.1-70b").out


def test_proxies_are_shown_as_such(llmb: Llmb) -> None:
    assert "are proxies: reduced to fit on fewer GPUs" in llmb("recipes", "nemo_launcher/grok1-314b").out
    assert "are proxies" not in llmb("recipes", "nemo_launcher/llama3.1-70b").out


def test_times_that_are_means_are_named_as_such(llmb: Llmb, tmp_path: Path) -> None:
    log = tmp_path / "nemo.log"
    bar = "Epoch 0: :  20%|# | 10/50 [00:49<07:25, reduced_train_loss=11.2, train_step_timing in s=24.80]\n"
    log.write_text(f"|     buffer_size: 5\n{bar}")

    assert llmb("parse", log, "--framework", "nemo_launcher").out.endswith(", printed as means of 5 steps\n")


def test_metrics_have_the_keys_of_the_contract(llmb: Llmb) -> None:
    point = ("maxtext/llama2-70b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
    metrics = llmb("metrics", *point, "--step-time", "7.908", "--json").json

    assert list(metrics) == METRICS_KEYS
    assert list(metrics["baseline"]) == BASELINE_KEYS
    assert (metrics["mfu_logged"], metrics["global_batch_size"], metrics["seq_len"]) == (None, 128, 4096)
    assert metrics["tokens_per_s"] == pytest.approx(66298.43, abs=0.01)  # the README's own example
    assert metrics["mfu"] == pytest.approx(0.4654, abs=0.001)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (
            ("h100", "bf16", "100"),
            "--gpus: maxtext/llama2-70b has no configuration for 100 GPUs (h100, bf16); expected one of 64, ",
        ),
        (
            ("h100", "fp4", "64"),
            "--dtype: maxtext/llama2-70b has no configuration for fp4 on h100; expected bf16 or fp8",
        ),
        (
            ("b200", "bf16", "64"),
            "--gpu-type: maxtext/llama2-70b has no configuration for b200; expected h100 or a100",
        ),
    ],
)
def test_the_error_for_an_unpublished_configuration_names_the_wrong_value(
    llmb: Llmb, point: tuple[str, str, str], message: str
) -> None:
    words = [word for pair in zip(("--gpu-type", "--dtype", "--gpus"), point, strict=True) for word in pair]
    answer = llmb("metrics", "maxtext/llama2-70b", *words, "--step-time", "1")
    assert (answer.status, len(answer.err.splitlines())) == (2, 1)
    assert answer.err.startswith(f"llmb: {message}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("grade", __file__, "--recipe", "maxtext/llama2-70b", "--gpu-type", "h100", "--dtype=bf16", "--gpus=100"),
            "--gpus: maxtext/llama2-70b has no configuration for 100 GPUs (h100, bf16); expected one of 64, ",
        ),
        (
            (
                "metrics",
                "maxtext/llama2-tiny",
                "--gpu-type=cpu",
                "--dtype=fp32",
                "--gpus=1",
                "--variant=x",
                "--step-time=1",
            ),
            "--variant: maxtext/llama2-tiny has no variant x for cpu, fp32; expected none",
        ),
        (("recipes", "--gpu-type", "h10"), "--gpu-type: unknown GPU type h10; expected one of "),
        (("recipes", "maxtext/llama2-70b", "--dtype", "b16"), "--dtype: unknown dtype b16; expected one of "),
        (("recipes", "--framework", "maxtex"), "--framework: unknown framework maxtex; expected one of "),
        (
            ("parse", __file__, "--recipe", "maxtext/llama2-tiny", "--gpus", "9"),
            "--gpus: maxtext/llama2-tiny has no configuration for 9 GPUs (cpu, fp32); expected 1 or 2\n",
        ),
    ],
)
def test_errors_name_options_as_they_are_typed(llmb: Llmb, arguments: tuple[str, ...], message: str) -> None:
    answer = llmb(*arguments)
    assert (answer.status, len(answer.err.splitlines())) == (2, 1)
    assert answer.err.startswith(f"llmb: {message}")


def test_a_configuration_without_a_baseline_has_metrics_too(llmb: Llmb) -> None:
    point = ("maxtext/llama2-70b", "--gpu-type", "a100", "--dtype", "bf16", "--gpus", "64")
    metrics = llmb("metrics", *point, "--tflops-per-gpu", "200", "--json").json

    assert metrics["baseline"] is None
    assert metrics["mfu_logged"] == pytest.approx(200 / 312)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--gpus", "64"),
        ("--gpus", "65", "--step-time", "7"),
        ("--gpus", "64", "--step-time", "0"),
        ("--gpus", "64", "--step-time", "nan"),
    ],
    ids=["no value", "no such point", "zero", "nan"],
)
def test_invalid_arguments_of_metrics_are_rejected(llmb: Llmb, arguments: tuple[str, ...]) -> None:
    answer = llmb("metrics", "maxtext/llama2-70b", "--gpu-type", "h100", "--dtype", "bf16", *arguments)

    assert (answer.status, answer.out) == (2, "")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--step-time", "1e-300", "--step-time: 1e-300 s is out of range; expected 1e-06 to 1e+07 s"),
        ("--step-time", "1e308", "--step-time: 1e+308 s is out of range; expected 1e-06 to 1e+07 s"),
        ("--step-time", "nan", "--step-time: nan s is out of range; expected 1e-06 to 1e+07 s"),
        (
            "--tflops-per-gpu",
            "1e308",
            "--tflops-per-gpu: 1e+308 TFLOP/s is out of range; expected 1e-06 to 1e+06 TFLOP/s",
        ),
        ("--tflops-per-gpu", "-1", "--tflops-per-gpu: -1 TFLOP/s is out of range; expected 1e-06 to 1e+06 TFLOP/s"),
    ],
)
def test_a_value_out_of_range_is_one_line(llmb: Llmb, option: str, value: str, message: str) -> None:
    point = ("--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
    answer = llmb("metrics", "maxtext/llama2-70b", *point, option, value)

    assert (answer.status, answer.out, answer.err) == (2, "", f"llmb: {message}\n")


# Recipes


def test_recipes_are_listed(llmb: Llmb) -> None:
    document = llmb("recipes", "--json").json
    [recipe] = [each for each in document["recipes"] if each["address"] == "maxtext/llama2-70b"]

    assert list(recipe) == ["address", "release", "description", "gpu_types", "dtypes", "gpus", "points", "baselines"]
    assert recipe["gpus"] == [64, 128, 256, 512, 1024, 2048]
    assert "maxtext/llama2-70b" in llmb("recipes").out


def test_a_recipe_has_the_keys_of_the_contract_and_every_published_point(llmb: Llmb) -> None:
    recipe = llmb("recipes", "maxtext/llama2-70b", "--json").json
    points = {(point["gpu_type"], point["dtype"], point["gpus"]): point for point in recipe["points"]}

    assert list(recipe) == ["address", "framework", "release", "image", "model", "flop_formula", "window", "points"]
    assert list(recipe["model"]) == MODEL_KEYS
    assert len(points) == len(recipe["points"]) == 18
    point = points["h100", "fp8", 2048]
    assert list(point) == POINT_KEYS
    parallelism: dict[str, int | str | None] = {
        "tp": 1,
        "pp": 1,
        "vp": None,
        "cp": 1,
        "ep": 1,
        "etp": 1,
        "dp": 2048,
        "fsdp": 128,
    }
    parallelism["pipeline_layout"] = None
    assert (point["parallelism"], point["global_batch_size"]) == (parallelism, 4096)
    for row in ROWS:
        published = points[row["gpu"], row["dtype"], int(row["gpus"])]
        assert published["baseline"]["step_time_s"] == float(row["step_time_s"])
    assert points["a100", "bf16", 64]["baseline"] is None


def test_a_recipe_as_a_table_has_a_line_for_each_point(llmb: Llmb) -> None:
    lines = llmb("recipes", "maxtext/llama2-70b").out.splitlines()

    assert lines[0].startswith("maxtext/llama2-70b, release 24.11: ")
    assert sum(each.split()[0] in ("h100", "a100") for each in lines) == 18


def test_a_recipe_shows_its_image_with_the_digest(llmb: Llmb) -> None:
    digest = "sha256:9c876dce0621f954d1733063e2af642682b188d757fb280cc55755fb8e194400"

    assert f"image: nvcr.io/nvidia/nemo:dev@{digest}\n" in llmb("recipes", "nemo_launcher/grok1-314b").out
    stated = llmb("recipes", "nemo_launcher/grok1-314b", "--json").json["image"]
    assert stated == f"nvcr.io/nvidia/nemo:dev@{digest}"
    assert "image: nvcr.io/nvidia/nemo:24.09\n" in llmb("recipes", "nemo_launcher/llama3.1-8b").out


@pytest.mark.parametrize("recipe", ["maxtext/llama2-70b", "maxtext/llama2-tiny"])
def test_a_recipe_as_toml_loads_again(llmb: Llmb, recipe: str, tmp_path: Path) -> None:
    import llmb as library

    file = tmp_path / "workload.toml"
    file.write_text(llmb("recipes", recipe, "--toml").out)
    [placed] = library.load(file, overrides=["target.gpus_per_node=8", 'target.scheduler="slurm"']).runs

    assert placed.run.recipe == recipe
    assert placed.run.differences == ()


def test_a_recipe_that_runs_here_is_valid_as_it_is_printed(llmb: Llmb, tmp_path: Path) -> None:
    file = tmp_path / "workload.toml"
    file.write_text(llmb("recipes", "maxtext/llama2-tiny", "--toml").out)

    assert llmb("validate", file).status == 0


def test_a_recipe_may_be_named_with_its_own_release(llmb: Llmb) -> None:
    plain = llmb("recipes", "megatron_bridge/llama3.1-70b", "--json").json
    address = f"megatron_bridge/llama3.1-70b@{plain['release']}"
    assert llmb("recipes", address, "--json").json == {**plain, "address": address}
    for release in ("1.0", f"{plain['release']}@{plain['release']}"):
        assert llmb("recipes", f"megatron_bridge/llama3.1-70b@{release}").status == 2


def test_an_unknown_recipe_is_one_line_with_the_closest_name(llmb: Llmb) -> None:
    answer = llmb("recipes", "maxtext/llama2-71b")

    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "llama2-70b" in answer.err


# Filters


def addresses(llmb: Llmb, *options: str) -> list[str]:
    return [entry["address"].partition("@")[0] for entry in llmb("recipes", *options, "--json").json["recipes"]]


def test_a_filter_selects_recipes_with_such_a_configuration(llmb: Llmb) -> None:
    assert addresses(llmb, "--gpu-type", "a100") == ["maxtext/llama2-70b", "nemo_launcher/nemotron4-340b"]
    assert addresses(llmb, "--gpu-type", "a100", "--dtype", "fp8") == []
    assert set(addresses(llmb, "--framework", "maxtext")) == {"maxtext/llama2-70b", "maxtext/llama2-tiny"}
    assert addresses(llmb, "--gpu-type", "a100", "--with-baseline") == []
    assert addresses(llmb, "--framework", "nemo_launcher", "--gpus", "16", "--with-baseline") == [
        *("nemo_launcher/grok1-314b", "nemo_launcher/llama3.1-8b")
    ]


def test_a_filter_selects_the_configurations_of_one_recipe(llmb: Llmb) -> None:
    options = ("--gpu-type", "h100", "--dtype", "fp8", "--gpus", "64", "--with-baseline")
    [point] = llmb("recipes", "maxtext/llama2-70b", *options, "--json").json["points"]
    assert (point["gpu_type"], point["dtype"], point["gpus"]) == ("h100", "fp8", 64)
    assert "a100" not in llmb("recipes", "maxtext/llama2-70b", *options).out


def test_without_a_match_nothing_is_listed(llmb: Llmb) -> None:
    answer = llmb("recipes", "--gpu-type", "l40s")
    assert (answer.status, answer.out) == (0, "")
    assert "no recipe has such a configuration" in answer.err
    answer = llmb("recipes", "maxtext/llama2-70b", "--gpus", "7")
    assert (answer.status, answer.out) == (0, "")
    assert "maxtext/llama2-70b has no such configuration" in answer.err


def test_without_recipes_no_filter_is_blamed(llmb: Llmb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb.list_recipes", lambda _where: ())
    assert llmb("recipes").err == "llmb: the installed frameworks have no recipes\n"


@pytest.mark.parametrize("address", [(), ("maxtext/llama2-70b",)], ids=["all recipes", "one recipe"])
@pytest.mark.parametrize(
    ("option", "name", "nearest"),
    [("--gpu-type", "h10", "h100"), ("--dtype", "fp9", "fp8"), ("--framework", "megatron", "megatron_bridge")],
)
def test_an_unknown_name_in_a_filter_is_one_line_with_the_closest_name(
    llmb: Llmb, address: tuple[str, ...], option: str, name: str, nearest: str
) -> None:
    answer = llmb("recipes", *address, option, name)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert f"{name}; expected one of " in answer.err
    assert f"(did you mean '{nearest}'?)" in answer.err


def test_gpu_types_dtypes_and_gpus_have_the_same_order_in_every_list(llmb: Llmb) -> None:
    types, dtypes = ["gb300", "gb200", "b300", "b200", "h100"], ["bf16", "fp8", "nvfp4"]
    entries = llmb("recipes", "--framework", "megatron_bridge", "--with-baseline", "--json").json["recipes"]
    for entry in entries:
        assert entry["gpu_types"] == [each for each in types if each in entry["gpu_types"]]
        assert entry["dtypes"] == [each for each in dtypes if each in entry["dtypes"]]
    rows = [line.split() for line in llmb("recipes", "megatron_bridge/llama3.1-405b@26.06").out.splitlines()]
    assert list(dict.fromkeys(row[0] for row in rows if row[0] in types)) == types
    starter = llmb("recipes", "megatron_bridge/deepseek-v3@26.06", "--toml").out
    assert 'any of "gb300", "gb200", "b300", "b200", "h100"' in starter
    assert "any of 4, 8, 16, 32, 64, 72, 128, 144" in starter


def test_a_recipe_shows_the_published_tflops_with_their_release_and_source(llmb: Llmb) -> None:
    shown = llmb("recipes", "megatron_bridge/deepseek-v3@26.06", "--gpu-type", "gb200", "--with-baseline").out
    [row] = [line.split() for line in shown.splitlines() if line.startswith("gb200")]
    assert "1106" in row
    assert row[row.index("1106") + 1] == "26.04.01"
    assert "1292@26.06," in row
    assert "baselines: Megatron-Bridge, docs/performance-summary-archive.md, container 26.04.01" in shown


def test_the_newest_release_is_first_and_older_releases_are_folded(llmb: Llmb) -> None:
    lines = llmb("recipes", "--framework", "megatron_bridge", "--gpu-type", "h100").out.splitlines()
    rows = [line for line in lines if line.startswith("megatron_bridge/llama3.1-8b@")]
    assert len(rows) == 1
    assert "25.10.02" in rows[0]
    listed = llmb("recipes", "--json").json["recipes"]
    releases = [entry["release"] for entry in listed if entry["address"].startswith("megatron_bridge/llama3.1-8b")]
    assert releases == sorted(releases, reverse=True)
    assert len(releases) > 1


def test_a_proxy_is_listed_with_its_sizes(llmb: Llmb) -> None:
    assert "ep16 proxy L61 h1024" in llmb("recipes", "megatron_bridge/deepseek-v3@26.06", "--gpus", "16").out
    assert "tp4 ep2 proxy L2 " in llmb("recipes", "nemo_launcher/grok1-314b", "--gpus", "8").out


def test_the_json_has_the_sizes_of_each_kind_of_model(llmb: Llmb) -> None:
    def model(name: str) -> dict[str, object]:
        sizes: dict[str, object] = llmb("recipes", f"megatron_bridge/{name}@26.06", "--json").json["model"]
        return {key: value for key, value in sizes.items() if key not in MODEL_KEYS}

    assert model("llama3.1-8b") == {"vocab_divisor": 128}
    assert model("deepseek-v3").keys() == {
        *("mla", "expert_ffn", "shared_expert_ffn", "dense_layers", "mtp_depth", "vocab_divisor")
    }
    assert model("nemotron3-nano-30b")["mamba"] == {"heads": 64, "head_size": 64, "groups": 8, "state": 128}
    points = llmb("recipes", "megatron_bridge/deepseek-v3@26.06", "--gpu-type", "h100", "--json").json["points"]
    assert "Et|(tt|)*30mL" in [point["parallelism"]["pipeline_layout"] for point in points]
