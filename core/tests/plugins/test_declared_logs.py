"""The logs of declared frameworks: formats of public trainers, read by a few keys of [log]."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from parts.command_line import command_line

from llmb import StepSeries
from llmb.plugins.declared.framework_tables import LogTable
from llmb.plugins.declared.log_format import compile_format
from llmb.plugins.declared.log_parser import DeclaredLog
from llmb.values.types.check_types import decode

RUN: Any = SimpleNamespace(gpus=8, parallelism=SimpleNamespace(global_batch_size=128), seq_len=1024)

MLLOG = """\
:::MLLOG {"namespace": "", "time_ms": 1714905569479, "event_type": "INTERVAL_START", "key": "block_start", \
"value": null, "metadata": {"file": "/workspace/ft-llm/custom_callbacks.py", "lineno": 146, "samples_count": 0}}
:::MLLOG {"namespace": "", "time_ms": 1714905625252, "event_type": "POINT_IN_TIME", "key": "tracked_stats", \
"value": {"throughput": 163.931835657446}, "metadata": {"file": "/workspace/ft-llm/custom_callbacks.py", \
"lineno": 161, "step": 7296}}
:::MLLOG {"namespace": "", "time_ms": 1714905628773, "event_type": "POINT_IN_TIME", "key": "tracked_stats", \
"value": {"throughput": 169.8381347605276}, "metadata": {"file": "/workspace/ft-llm/custom_callbacks.py", \
"lineno": 161, "step": 7680}}
:::MLLOG {"namespace": "", "time_ms": 1714905632097, "event_type": "POINT_IN_TIME", "key": "tracked_stats", \
"value": {"throughput": 180.03471850319966}, "metadata": {"file": "/workspace/ft-llm/custom_callbacks.py", \
"lineno": 161, "step": 8064}}
"""
"""Lines of NVIDIA's MLPerf training 4.0 result for Llama 2 70B LoRA on 1024 H100."""


def parser_of(log: dict[str, Any], run: Any = RUN) -> DeclaredLog:
    table, errors = decode(log, LogTable, "log")
    assert table, errors
    compiled, errors = compile_format(table)
    assert compiled, errors
    return DeclaredLog(compiled, run)


def read(log: dict[str, Any], text: str, run: Any = RUN) -> StepSeries:
    parser, series = parser_of(log, run), StepSeries()
    series.add(parser.feed(text.encode()))
    series.add(parser.close())
    return series


def values(series: StepSeries, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(step, name, None) for name in names) for step in series.steps]


NANOGPT = {"line": "iter {step}: loss {loss}, time {time_ms}ms, mfu {mfu_percent}%", "first_step": 0}
TORCHTITAN = {
    "line": "step: {step} loss: {loss} ... memory: {gib}GiB ... tps: {tokens_per_s_per_gpu} tflops: {tflops_per_gpu}",
    "end": "Training completed",
    "time_is_mean": True,
}
TRAINER = {"fields": {"where": "'grad_norm'", "loss": "loss", "lr": "learning_rate"}, "printed_every": 10}
OLMO = {
    "line": [
        "{clock} ... [step={step}/{total_steps}]",
        "train/CrossEntropyLoss={loss}",
        "throughput/device/tokens_per_second={tokens_per_s_per_gpu}",
    ]
}


def test_a_line_without_a_value_counts_as_no_step() -> None:
    lines = {"line": ["training for {total_steps} steps", "loss {loss}"]}
    assert not read(lines, "training for 100 steps\n").steps
    assert not read(lines, "loss 3.").steps  # torn
    assert [step.loss for step in read(lines, "training for 100 steps\nloss 3.5\nloss 2.5\n").steps] == [3.5, 2.5]


def test_nanogpt_prints_each_step_with_its_time() -> None:
    text = "iter 0: loss 10.9886, time 63123.45ms, mfu -100.00%\niter 10: loss 10.1, time 135.20ms, mfu 22.51%\n"
    series = read(NANOGPT, text)
    assert values(series, "step", "loss", "time_s") == [(0, 10.9886, 63.12345), (10, 10.1, pytest.approx(0.1352))]
    assert series.steps[1].other_values == {"mfu_percent": 22.51}


def test_torchtitan_prints_rates_from_which_the_step_time_follows() -> None:
    text = (
        "\x1b[32m[titan] 2025-03-04 10:00:01,123 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss:  8.1376  "
        "\x1b[33mmemory: 46.45GiB(48.85%)  \x1b[34mtps: 1,638  \x1b[36mtflops: 13.25  \x1b[35mmfu: 1.34%\n"
        "[titan] 2025-03-04 10:00:09,123 - root - INFO - step: 10  loss:  7.1376  "
        "memory: 46.45GiB(48.85%)  tps: 6,553.6  tflops: 52.35  mfu: 5.29%\n"
        "[titan] 2025-03-04 10:00:10,123 - root - INFO - Training completed\n"
    )
    series = read(TORCHTITAN, text)
    assert values(series, "step", "loss", "tokens_per_s_per_gpu", "tflops_per_gpu") == [
        (1, 8.1376, 1638.0, 13.25),
        (10, 7.1376, 6553.6, 52.35),
    ]
    assert series.steps[1].time_s == pytest.approx(128 * 1024 / 8 / 6553.6)
    assert series.steps[1].mean_of == 9
    assert series.has_notice("finished")


def test_the_trainer_of_hugging_face_prints_neither_steps_nor_times() -> None:
    text = (
        "{'loss': 2.6831, 'grad_norm': 1.25, 'learning_rate': 4.9e-05, 'epoch': 0.02}\n"
        "{'eval_loss': 2.5, 'eval_runtime': 3.1, 'epoch': 0.02}\n"
        "{'loss': 2.5, 'grad_norm': nan, 'learning_rate': 4.8e-05, 'epoch': 0.04}\n"
    )
    series = read(TRAINER, text)
    assert values(series, "step", "loss", "time_s") == [(10, 2.6831, None), (20, 2.5, None)]
    assert series.steps[1].other_values == {"lr": 4.8e-05}


def test_lines_without_a_number_add_their_values_to_the_step_before() -> None:
    text = (
        "".join(
            f"2024-10-01 23:59:{58 + number:02}.500 node1:0 olmo_core.train INFO [step={number}/100]\n"
            f"    train/CrossEntropyLoss={11 - number}.5\n    throughput/device/tokens_per_second=1{number}000\n"
            for number in (0, 1)
        )
        + "2024-10-02 00:00:01.500 node1:0 olmo_core.train INFO [step=3/100]\n"
    )
    series = read(OLMO, text)
    assert values(series, "step", "loss", "tokens_per_s_per_gpu") == [(0, 11.5, 10e3), (1, 10.5, 11e3), (3, None, None)]
    assert [step.time_s for step in series.steps][1:] == [1.0, 1.0]
    assert series.total_steps == 100


def test_mlperf_counts_samples_and_prints_samples_per_second() -> None:
    log = {"fields": {"where": '"tracked_stats"', "samples": "step", "samples_per_s": "throughput"}}
    series = read(log, MLLOG)
    assert [step.step for step in series.steps] == [57, 60, 63]
    assert series.steps[0].time_s == pytest.approx(128 / 163.931835657446)
    assert [step.step for step in read(log, MLLOG, None).steps] == [1, 2, 3]


def test_mlperf_has_step_times_by_its_time_stamps_alone() -> None:
    log = {"fields": {"where": '"tracked_stats"', "samples": "step", "clock_ms": "time_ms"}}
    assert [step.time_s for step in read(log, MLLOG).steps] == [
        None,
        pytest.approx(3.521 / 3),
        pytest.approx(3.324 / 3),
    ]


@pytest.mark.parametrize(
    ("name", "text", "time_s"),
    [
        ("time_s", "0.5", 0.5),
        ("time_ms", "500", 0.5),
        ("time_us", "500000", 0.5),
        ("time_min", "0.5", 30),
        ("steps_per_s", "2", 0.5),
        ("samples_per_s", "256", 0.5),
        ("tokens_per_s", "262144", 0.5),
        ("tokens_per_s_per_gpu", "32,768", 0.5),
        ("ktokens_per_s_per_gpu", "32.768", 0.5),
    ],
)
def test_every_unit_gives_the_step_time_in_seconds(name: str, text: str, time_s: float) -> None:
    [step] = read({"line": f"step {{step}} took {{{name}}} units"}, f"step 4 took {text} units\n").steps
    assert step.time_s == pytest.approx(time_s)


@pytest.mark.parametrize(
    ("name", "text"),
    [("tflops_per_gpu", "312.5"), ("gflops_per_gpu", "312500"), ("flops_per_gpu", "3.125e14"), ("tflops", "2500")],
)
def test_every_unit_gives_tflops_per_gpu(name: str, text: str) -> None:
    [step] = read({"line": f"step {{step}} at {{{name}}} here"}, f"step 4 at {text} here\n").steps
    assert step.tflops_per_gpu == pytest.approx(312.5)


def test_a_time_of_day_without_a_date_may_pass_midnight() -> None:
    series = read({"line": "{clock} step {step}"}, "23:59:59.5 step 1\n0:00:01.5 step 2\n0:00:05.5 step 4\n")
    assert [step.time_s for step in series.steps] == [None, 2.0, 2.0]


def test_a_word_is_not_found_at_the_end_of_a_longer_word() -> None:
    text = "step=10, skipped=0\nmicro_step=40/global_step=10, took 12ms loss=3\n"
    assert [step.step for step in read({"line": "step={step}"}, text).steps] == [10]
    assert [step.loss for step in read({"line": "global_step={step} ... ms loss={loss}"}, text).steps] == [3.0]


@pytest.mark.parametrize(
    ("text", "value"),
    [("812", 812), ("1.21K", 1210), ("15.1k", 15100), ("3M", 3e6), ("1.5B", 1.5e9), ("2G", 2e9), ("1.5T", 1.5e12)],
)
def test_a_suffix_multiplies_a_number(text: str, value: float) -> None:
    for log in ({"line": "step {step} at {speed} ..."}, {"fields": {"where": "step", "step": "step", "speed": "at"}}):
        line = f"step 4 at {text} now\n" if "line" in log else f"step=4 at={text} now\n"
        [step] = read(log, line).steps
        assert step.other_values == {"speed": value}


def test_a_suffix_in_the_line_is_text() -> None:
    [step] = read({"line": "step {step} at {speed}K"}, "step 4 at 1.21K\nstep 6 at 812\n").steps
    assert (step.step, step.other_values) == (4, {"speed": 1.21})


def test_two_runs_in_one_log_are_two_runs_if_the_step_begins_the_line() -> None:
    run = "".join(f"step{number}: loss 3.5\n" for number in range(1, 9))
    series = read({"line": "step{step}: loss {loss}"}, run + run)
    assert series.steps[-1].attempt == 1


def test_totals_are_unknown_without_the_run() -> None:
    [step] = read({"line": "step {step}: {tokens_per_s} tok/s"}, "step 4: 100 tok/s\n", None).steps
    assert (step.time_s, step.tokens_per_s_per_gpu) == (None, None)


def test_a_loss_of_nan_is_detected_as_a_number_and_as_a_text() -> None:
    log = {"line": "step {step} loss {loss}", "nan": "loss diverged"}
    assert read(log, "step 1 loss nan\n").nan
    assert read(log, "step 1 loss 2\nERROR: loss diverged\n").nan
    assert not read(log, "step 1 loss 2\n").nan


ALL = {"nanogpt": NANOGPT, "torchtitan": TORCHTITAN, "trainer": TRAINER, "olmo": OLMO}


@pytest.mark.parametrize("name", ALL)
def test_blocks_may_be_cut_anywhere_and_logs_may_end_anywhere(name: str) -> None:
    text = (
        b"iter 10: loss 10.1, time 135.20ms, mfu 22.51%\n"
        b"step: 10  loss:  7.1  memory: 46.45GiB(48%)  tps: 6,553  tflops: 52.35\n"
        b"{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 4.8e-05}\n2024-10-01 23:59:58.5 INFO [step=3/100]\n"
        b"    train/CrossEntropyLoss=10.5\n"
    )
    whole = read(ALL[name], text.decode())
    assert whole.steps
    for place in range(len(text)):
        parser, series = parser_of(ALL[name]), StepSeries()
        series.add([*parser.feed(text[:place]), *parser.feed(text[place:]), *parser.close()])
        assert list(series.steps) == list(whole.steps)
        cut = read(ALL[name], text[:place].decode())
        for step in cut.steps:
            whole_step = whole.steps[whole.steps.numbers.index(step.step)]  # type: ignore[attr-defined]  # SortedSteps
            assert step.loss in (None, whole_step.loss)
            assert step.time_s in (None, whole_step.time_s)


def is_read_in_linear_time(pattern: Any, unit: bytes) -> bool:
    """Compare the times for two lengths of a line. A disturbed measurement may be wrong."""
    times = []
    for size in (2_000, 16_000):
        text = unit * (size // len(unit))
        begin = time.process_time()
        pattern.read(text)
        times.append(time.process_time() - begin)
    return times[1] < max(0.05, 24 * times[0])


def test_matching_takes_linear_time_for_every_line() -> None:
    """A quadratic pattern would take 64 times as long for a line of 8 times the length."""
    random.seed(22)
    alphabet = ["{a}", "{b}", "{c}", "...", " ", "x", "xx", "1x", ",", "x{d}", "a b ", "1"]
    lines = ["".join(random.choices(alphabet, k=random.randint(4, 10))) for _ in range(300)]
    for line in ["xx{a}x ... xx{b} ... x{c}", *lines]:
        table, _ = decode({"line": line}, LogTable, "log")
        compiled = compile_format(table)[0] if table else None
        if compiled is None:
            continue
        [pattern] = compiled.lines
        for unit in (b"x", b"1", b" ", b"x1", b"x 1 ", b"1,", b"xx1x ", b"a b "):
            assert any(is_read_in_linear_time(pattern, unit) for _ in range(5)), (line, unit)


@pytest.mark.parametrize(
    ("log", "error"),
    [
        ({"line": "{step} loss {loss}"}, "log.line: no text before {step}"),
        ({"line": "step {step}{loss}"}, "log.line: {step} and {loss} touch"),
        ({"line": "a {step}"}, "log.line: no text of 2 characters or more"),
        ({"line": "step {step} {step}"}, "log.line: {step} occurs more than once"),
        ({"line": "step {Step}"}, "log.line: invalid name {Step}"),
        ({"line": "step {step"}, "log.line: a single {"),
        ({"line": "only text"}, "log.line: no number is named"),
        (
            {"line": "step {step} {tim_ms} ms"},
            "tim_ms is too similar to time_ms; expected time_ms, or a ",
        ),
        ({"line": "step {step} attempt {attempt}"}, "log.line: attempt is a name that llmb uses for another value"),
        (
            {"fields": {"where": "step", "mean_of": "n"}},
            "log.fields: mean_of is a name that llmb uses for another value",
        ),
        ({"line": ["step {step}", "at {los}"]}, "log.line[1]: los is too similar to loss"),
        ({"line": "step {step} {time_ms} ms, {time_s} s"}, "log.line: {time_ms} and {time_s} are one value in several"),
        ({"fields": {"where": "step", "clock": "at", "clock_ms": "t"}}, "log.fields: {clock} and {clock_ms} are one"),
        ({"fields": {"loss": "loss"}}, "log.fields.where: invalid value"),
        ({"fields": {"where": "loss"}}, "log.fields: no number is named"),
        ({}, "log.line: required key is missing"),
    ],
)
def test_a_line_that_could_not_be_read_is_an_error(log: dict[str, Any], error: str) -> None:
    table, _ = decode(log, LogTable, "log")
    assert table
    compiled, errors = compile_format(table)
    assert compiled is None
    assert error in " ".join(map(str, errors))


COUNTS_SAMPLES = """
command = ["train"]
[log]
line = "seen {samples} rate {samples_per_s}"
[recipe]
steps = 3
seq_len = 128
global_batch_size = 8
params = 1e6
"""


@pytest.fixture
def log_of_samples(tmp_path: Path) -> Path:
    """Return a log of three steps of 8 samples and half a second."""
    log = tmp_path / "train.log"
    log.write_text("seen 8 rate 16\nseen 16 rate 16\nseen 24 rate 16\n")
    return log


def test_grade_supplies_the_sizes_that_a_log_needs(capsys: pytest.CaptureFixture[str], log_of_samples: Path) -> None:
    frameworks = Path(os.environ["XDG_CONFIG_HOME"]) / "llmb/frameworks"
    frameworks.mkdir(parents=True)
    (frameworks / "own.toml").write_text(COUNTS_SAMPLES)
    point = ("--recipe", "own/own", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", 1)
    graded = command_line(capsys)("grade", log_of_samples, *point, "--window", "2:3", "--json").json
    assert graded["metrics"]["step_time_s"] == 0.5
    assert (graded["window"]["first"], graded["window"]["last"]) == (2, 3)


def test_parse_names_the_values_that_need_a_recipe(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, log_of_samples: Path
) -> None:
    llmb = command_line(capsys)
    log, file = log_of_samples, tmp_path / "own.toml"
    file.write_text(COUNTS_SAMPLES)
    note = "supply the run's sizes, which llmb needs for samples, samples_per_s; without them, each line counts as a"
    unknown, known = llmb("parse", log, "--framework", file), llmb("parse", log, "--recipe", file)
    assert (unknown.status, known.status) == (0, 0)
    assert f"note: --recipe and --gpus {note} step\n" in unknown.out
    assert "note:" not in known.out
    assert "last step: 0.5 s" in known.out
