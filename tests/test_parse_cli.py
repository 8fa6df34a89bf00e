"""``llmb parse``, ``metrics`` and ``recipes``: for people and for programs, from logs that somebody else made."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb.cli import figures, inspect, run  # noqa: F401  # they add their commands
from llmb.cli import main as command_line

BASELINES = Path(__file__).parents[1] / "core" / "tests" / "figures" / "baselines.csv"
ALL_ROWS = list(csv.DictReader(BASELINES.read_text().splitlines()))
ROWS = [row for row in ALL_ROWS if row["framework"] == "maxtext"]
CONTRADICTORY = ("llama3.1-70b", "bf16", "2048")  # the publisher's other figures are of 14.92 s, beside 14.98 s

STEP_KEYS = ["step", "time_s", "loss", "tflops_per_gpu", "tokens_per_s_per_gpu"]
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
    *("step_time_s", "tokens_per_s", "mfu", "days_per_1t_tokens", "step_time_ratio", "release", "source"),
]
MODEL_KEYS = ["layers", "hidden", "ffn", "heads", "query_groups", "vocab", "experts", "top_k"]
POINT_KEYS = [
    *("gpu_type", "dtype", "gpus", "layers", "seq_len", "global_batch_size", "micro_batch_size"),
    *("gradient_accumulation", "proxy", "parallelism", "recompute_layers", "offload_layers", "cuda_graphs", "baseline"),
]
SUMMARY_KEYS = ["window", "count", "step_time_s", "step_time_std_s", "tflops_per_gpu", "tflops_per_gpu_std"]


@attrs.frozen
class Answer:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


Llmb = Callable[..., Answer]


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    """The command line, called as a function."""

    def call(*arguments: object) -> Answer:
        capsys.readouterr()
        try:
            status = command_line._exit_status([str(each) for each in arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        return Answer(status, *capsys.readouterr())

    return call


@pytest.fixture
def parse(llmb: Llmb) -> Llmb:
    """``llmb parse --framework maxtext``."""
    return lambda *arguments: llmb("parse", *arguments, "--framework", "maxtext")


def line(step: int, time_s: float = 2.0, loss: float = 8.0) -> str:
    rate = f"TFLOP/s/device: {800 / time_s:.3f}, Tokens/s/device: {4096 / time_s:.3f}"
    return f"completed step: {step}, seconds: {time_s:.3f}, {rate}, total_weights: 4096, loss: {loss:.3f}\n"


def write(path: Path, times: Sequence[float], first: int = 0, end: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line(first + place, time_s) for place, time_s in enumerate(times)) + end)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "run.log", [40.0, 0.5, 2.0, 2.0, 2.5])


# One log


def test_one_log_has_the_keys_of_the_contract(parse: Llmb, log: Path) -> None:
    answer = parse(log, "--json")

    assert (answer.status, answer.err) == (0, "")
    assert list(answer.json) == ["framework", "status", "steps", "summary", "failure"]
    assert (answer.json["framework"], answer.json["status"], answer.json["failure"]) == ("maxtext", "complete", None)
    assert list(answer.json["steps"][0])[:5] == STEP_KEYS
    assert answer.json["steps"][2] == {
        "step": 2,
        "time_s": 2.0,
        "loss": 8.0,
        "tflops_per_gpu": 400.0,
        "tokens_per_s_per_gpu": 2048.0,
        "mean_of": 1,
        "total_weights": 4096.0,
    }
    assert answer.json["summary"] == dict(zip(SUMMARY_KEYS, ["last", 1, 2.5, None, 320.0, None], strict=True))


def test_nan_is_null_and_makes_the_log_nan(parse: Llmb, tmp_path: Path) -> None:
    log = write(tmp_path / "nan.log", [2.0], end=line(1, loss=float("nan")))
    answer = parse(log, "--json")

    assert (answer.status, answer.json["status"]) == (0, "nan")
    assert [step["loss"] for step in answer.json["steps"]] == [8.0, None]


@pytest.mark.parametrize(
    ("window", "shown", "count", "mean"),
    [("last", "last", 1, 2.5), ("2:4", [2, 4], 3, 6.5 / 3), ("3:44", [3, 44], 2, 2.25), ("70:80", [70, 80], 0, None)],
)
def test_the_mean_is_over_the_window(
    parse: Llmb, log: Path, window: str, shown: object, count: int, mean: float | None
) -> None:
    summary = parse(log, "--window", window, "--json").json["summary"]

    assert (summary["window"], summary["count"]) == (shown, count)
    assert summary["step_time_s"] == (mean if mean is None else pytest.approx(mean))


@pytest.mark.parametrize("window", ["5:2", "first", "3", "3:", "a:b", "-1:4"])
def test_what_is_no_window_is_refused(parse: Llmb, log: Path, window: str) -> None:
    answer = parse(log, f"--window={window}")

    assert (answer.status, answer.out) == (2, "")
    assert "expected last, or FIRST:LAST such as 35:44" in " ".join(answer.err.split())


@pytest.mark.parametrize(("steps", "status"), [(4, "complete"), (5, "complete"), (6, "incomplete")])
def test_steps_say_when_a_log_is_whole(parse: Llmb, log: Path, steps: int, status: str) -> None:
    answer = parse(log, "--steps", steps, "--json")

    assert (answer.status, answer.json["status"]) == (0, status)


def test_a_part_of_a_log_is_counted_from_the_framework_s_first_step(parse: Llmb, tmp_path: Path) -> None:
    log = write(tmp_path / "tail.log", [2.0], first=49)

    assert parse(log, "--steps", 50, "--json").json["status"] == "complete"
    assert parse(log, "--steps", 51, "--json").json["status"] == "incomplete"


def test_a_log_that_broke_says_why(parse: Llmb, tmp_path: Path) -> None:
    end = "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.95GiB\n"
    log = write(tmp_path / "broken.log", [2.0, 2.0], end=end)
    failure = parse(log, "--steps", 50, "--json").json["failure"]

    assert list(failure) == ["cause", "evidence", "line", "remedy"]
    assert (failure["evidence"], failure["line"]) == (end.strip(), 3)
    assert failure["cause"] in parse(log, "--steps", 50).out


def test_as_csv_each_step_is_a_line(parse: Llmb, log: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(parse(log, "--csv").out)))

    assert list(rows[0])[:5] == STEP_KEYS
    assert [(int(row["step"]), float(row["time_s"])) for row in rows] == list(enumerate([40.0, 0.5, 2.0, 2.0, 2.5]))
    assert rows[0]["total_weights"] == "4096.0"


def test_as_a_table_each_step_is_a_line_and_the_mean_is_the_last(parse: Llmb, log: Path) -> None:
    heading, *steps, mean = parse(log, "--window", "2:4").out.splitlines()

    assert heading.split()[:3] == ["step", "time", "s"]
    assert [each.split()[0] for each in steps] == ["0", "1", "2", "3", "4"]
    assert mean.startswith("complete, 5 steps, steps 2 to 4: 2.167 s (standard deviation")


@pytest.mark.parametrize(
    ("window", "told"),
    [("3:44", "steps 3 to 44, 2 of them measured: 2.25 s"), ("70:80", "none of steps 70 to 80 has a time")],
)
def test_a_window_that_was_not_measured_whole_is_told(parse: Llmb, log: Path, window: str, told: str) -> None:
    assert told in parse(log, "--window", window).out.splitlines()[-1]


def test_one_form_of_output_at_a_time(parse: Llmb, log: Path) -> None:
    assert (parse(log, "--json", "--csv").status, parse(log, "--json", "--csv").json["errors"] != []) == (2, True)


# Several logs, and directories


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "experiments"
    write(folder / "a" / "log.out", [2.0, 2.0])
    write(folder / "b" / "log.out", [3.0, 3.0], end=line(2, loss=float("nan")))
    (folder / "notes.txt").write_text("completed step by step\n")
    (folder / "empty.log").touch()
    (folder / "a" / "image.sqsh").write_bytes(os.urandom(100_000))
    return folder


def test_of_a_directory_the_logs_of_the_framework_are_parsed(parse: Llmb, folder: Path) -> None:
    answer = parse(folder, "--json")

    assert (answer.status, list(answer.json)) == (0, ["logs", "summary"])
    assert [log["path"] for log in answer.json["logs"]] == [str(folder / name / "log.out") for name in "ab"]
    assert list(answer.json["logs"][0])[:3] == ["experiment", "path", "framework"]
    assert [(log["experiment"], log["status"]) for log in answer.json["logs"]] == [("log", "complete"), ("log", "nan")]
    assert answer.json["summary"] == {"succeeded": 1, "failed": 1}


def test_several_logs_are_parsed_each_on_its_own(parse: Llmb, folder: Path) -> None:
    answer = parse(folder / "a" / "log.out", folder / "empty.log", "--json")

    assert [log["status"] for log in answer.json["logs"]] == ["complete", "no_data"]
    assert answer.json["summary"] == {"succeeded": 1, "failed": 1}
    assert answer.status == 0


def test_as_csv_each_log_is_a_line(parse: Llmb, folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(parse(folder, "--csv").out)))

    assert list(rows[0]) == ["experiment", "status", *SUMMARY_KEYS[1:], "path"]
    assert [(row["status"], row["step_time_s"]) for row in rows] == [("complete", "2.0"), ("nan", "2.0")]


def test_as_a_table_each_log_is_a_line(parse: Llmb, folder: Path) -> None:
    _, *rows, counts = parse(folder).out.splitlines()

    assert [row.split() for row in rows] == [
        ["log", "Success", "2000.000", "-", "400.00", "-"],
        ["log", "Failed", "(NaN", "by", "step", "2)"],
    ]
    assert counts == "1 succeeded, 1 failed; mean of the last step"


def test_a_run_that_did_not_reach_the_window_s_end_is_no_result(parse: Llmb, folder: Path) -> None:
    answer = parse(folder / "a", "--window", "0:2")

    assert answer.out.splitlines()[1].split() == ["log", "Failed", "(1", "steps)"]
    assert parse(folder / "a", "--window", "0:2", "--json").json["summary"] == {"succeeded": 0, "failed": 1}


def test_without_a_log_a_framework_s_own_directory_is_needed(parse: Llmb) -> None:
    answer = parse()

    assert answer.status == 2
    assert "maxtext has no directory of its own for logs" in answer.err


# Bad input: one clear line


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (bytes(range(256)) * 1000, "is binary, and not a log of maxtext"),
        (b"Training epoch 0, iteration 0/19 | lr: 1e-06 | global_step: 0\n", "is it the log of another framework?"),
        (b"x" * 3_000_000, "is it the log of another framework?"),
    ],
    ids=["empty", "binary", "of another framework", "one line"],
)
def test_a_log_without_a_step_is_one_line_and_exit_1(parse: Llmb, tmp_path: Path, content: bytes, told: str) -> None:
    log = tmp_path / "bad.log"
    log.write_bytes(content)
    answer = parse(log)

    assert (answer.status, answer.out) == (1, "")
    assert [*map(str.strip, answer.err.splitlines())] == [answer.err.strip()]
    assert answer.err.startswith(f"llmb: {log}: ")
    assert told in answer.err
    document = parse(log, "--json").json
    assert (document["status"], document["steps"], document["summary"]["step_time_s"]) == ("no_data", [], None)


def test_a_directory_without_a_log_is_one_line_and_exit_1(parse: Llmb, tmp_path: Path) -> None:
    answer = parse(tmp_path)

    assert (answer.status, answer.out) == (1, "")
    assert answer.err == f"llmb: {tmp_path}: no file in it has a step of maxtext\n"
    assert parse(tmp_path, "--json").json == {"logs": [], "summary": {"succeeded": 0, "failed": 0}}


def test_a_log_that_is_missing_is_one_line_and_exit_2(parse: Llmb, tmp_path: Path, log: Path) -> None:
    missing = tmp_path / "missing.log"

    assert parse(missing) == Answer(2, "", f"llmb: {missing}: cannot be read: No such file or directory\n")
    answer = parse(log, missing, "--json")
    assert answer.status == 2
    assert [fault["file"] for fault in answer.json["errors"]] == [str(missing)]


def test_a_log_that_may_not_be_read_is_one_line_and_exit_2(
    parse: Llmb, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_open = Path.open

    def refuse(path: Path, *arguments: Any, **more: Any) -> Any:
        if path == log:
            raise PermissionError(13, "Permission denied", str(path))
        return really_open(path, *arguments, **more)

    monkeypatch.setattr(Path, "open", refuse)  # file modes do not stop root

    assert parse(log) == Answer(2, "", f"llmb: {log}: cannot be read: Permission denied\n")


def test_a_framework_that_is_not_installed_is_one_line_and_exit_2(llmb: Llmb, log: Path) -> None:
    answer = llmb("parse", log, "--framework", "maxtex")

    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "did you mean 'maxtext'?" in answer.err


# Metrics


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda row: f"{row['recipe']}-{row['dtype']}-{row['gpus']}")
def test_the_published_figures_follow_from_the_published_step_times(llmb: Llmb, row: dict[str, str]) -> None:
    point = ("--gpu-type", row["gpu"], "--dtype", row["dtype"], "--gpus", row["gpus"])
    contradictory = (row["recipe"], row["dtype"], row["gpus"]) == CONTRADICTORY
    step_time_s = "14.92" if contradictory else row["step_time_s"]
    answer = llmb("metrics", f"{row['framework']}/{row['recipe']}", *point, "--step-time", step_time_s, "--json")
    metrics = answer.json

    assert answer.status == 0
    assert metrics["tokens_per_s"] == as_printed(row["tokens_per_s"])
    if row["mfu_percent"]:
        assert metrics["mfu"] == pytest.approx(float(row["mfu_percent"]) / 100, abs=0.001)
    assert metrics["days_per_1t_tokens"] == as_printed(row["days_per_1t_tokens"])
    assert metrics["global_batch_size"] == int(row["global_batch_size"])
    assert metrics["seq_len"] == int(row["seq_len"])
    assert (metrics["baseline"]["step_time_ratio"] == 1.0) is not contradictory
    assert metrics["baseline"]["tokens_per_s"] == float(row["tokens_per_s"])


def as_printed(figure: str) -> object:
    """What rounds to this figure, as far as it has decimals; null where none is printed."""
    if not figure:
        return None
    decimals = len(figure.partition(".")[2])
    return pytest.approx(float(figure), abs=0.51 * 10.0**-decimals)


def test_all_rows_are_there() -> None:
    assert (len(ROWS), len(ALL_ROWS)) == (12, 52)


def test_a_row_that_contradicts_itself_is_shown_as_such(llmb: Llmb) -> None:
    assert "note: h100 bf16 on 2048 GPUs contradicts itself" in llmb("recipes", "nemo_launcher/llama3.1-70b").out


def test_proxies_are_shown_as_such(llmb: Llmb) -> None:
    assert "are proxies, made to fit on fewer GPUs" in llmb("recipes", "nemo_launcher/grok1-314b").out
    assert "are proxies" not in llmb("recipes", "nemo_launcher/llama3.1-70b").out


def test_times_that_are_means_are_told_as_such(llmb: Llmb, tmp_path: Path) -> None:
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
    ("point", "told"),
    [
        (
            ("h100", "bf16", "100"),
            "gpus: is 100, which maxtext/llama2-70b does not publish on h100 bf16; expected one of 64, ",
        ),
        (
            ("h100", "fp4", "64"),
            'dtype: is "fp4", for which maxtext/llama2-70b is not published on h100; expected one of ',
        ),
        (
            ("b200", "bf16", "64"),
            'gpu_type: is "b200", for which maxtext/llama2-70b is not published; expected one of ',
        ),
    ],
)
def test_a_point_that_is_not_published_is_told_by_what_of_it_is_not(
    llmb: Llmb, point: tuple[str, str, str], told: str
) -> None:
    words = [word for pair in zip(("--gpu-type", "--dtype", "--gpus"), point, strict=True) for word in pair]
    answer = llmb("metrics", "maxtext/llama2-70b", *words, "--step-time", "1")
    assert (answer.status, len(answer.err.splitlines())) == (2, 1)
    assert answer.err.startswith(f"llmb: {told}")


def test_a_point_without_a_baseline_has_metrics_all_the_same(llmb: Llmb) -> None:
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
    ids=["no figure", "no such point", "zero", "nan"],
)
def test_metrics_of_nothing_are_refused(llmb: Llmb, arguments: tuple[str, ...]) -> None:
    answer = llmb("metrics", "maxtext/llama2-70b", "--gpu-type", "h100", "--dtype", "bf16", *arguments)

    assert (answer.status, answer.out) == (2, "")


# Recipes


def test_recipes_are_listed(llmb: Llmb) -> None:
    document = llmb("recipes", "--json").json
    [recipe] = [each for each in document["recipes"] if each["address"] == "maxtext/llama2-70b"]

    assert list(recipe) == ["address", "release", "description", "gpu_types", "dtypes", "gpus"]
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
    parallelism = {"tp": 1, "pp": 1, "vp": None, "cp": 1, "ep": 1, "etp": 1, "dp": 2048, "fsdp": 128}
    assert (point["parallelism"], point["global_batch_size"]) == (parallelism, 4096)
    for row in ROWS:
        published = points[row["gpu"], row["dtype"], int(row["gpus"])]
        assert published["baseline"]["step_time_s"] == float(row["step_time_s"])
    assert points["a100", "bf16", 64]["baseline"] is None


def test_a_recipe_as_a_table_has_a_line_for_each_point(llmb: Llmb) -> None:
    lines = llmb("recipes", "maxtext/llama2-70b").out.splitlines()

    assert lines[0].startswith("maxtext/llama2-70b, release 24.11: ")
    assert sum(each.split()[0] in ("h100", "a100") for each in lines) == 18


def test_a_recipe_shows_which_image_it_means(llmb: Llmb) -> None:
    digest = "sha256:9c876dce0621f954d1733063e2af642682b188d757fb280cc55755fb8e194400"

    assert f"image: nvcr.io/nvidia/nemo:dev@{digest}\n" in llmb("recipes", "nemo_launcher/grok1-314b").out
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


def test_a_recipe_that_is_not_there_is_one_line_with_the_nearest(llmb: Llmb) -> None:
    answer = llmb("recipes", "maxtext/llama2-71b")

    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "llama2-70b" in answer.err
