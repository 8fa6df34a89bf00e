"""Megatron's logs of every version and fork: values of their lines, and torn, joined and garbled lines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts.garbled import cut, garbled, read

import llmb
from llmb import Notice, Step
from llmb.analysis.measuring_window import summarise
from llmb.logs.steps.step_series import StepSeries
from llmb_megatron_bridge.log import MegatronLog

GOLDEN = Path(__file__).parent / "logs"
SHARED = Path(__file__).parents[4] / "shared" / "logs" / "megatron"

# Steps of the last run, then the number, seconds and TFLOP/s per GPU of its last step; from INDEX.tsv and the logs.
EXPECTED: dict[str, tuple[int, int, float, float | None]] = {
    "01-bigscience-meg-ds-3d-off-62steps": (62, 62, 125.2478, None),
    "03-bigscience-meg-n8-loginterval10-cancelled": (20, 200, 1.6172, None),
    "05-bigscience-meg-n64-timelimit": (6, 60, 6.7037, None),
    "07-bigscience-ds-zero-no-consumed-samples": (4, 4, 127.766, None),
    "09-bloom176b-tr11-seconds-default7": (17, 45000, 111.0, 141.26),
    "11-tr8-104b-divergence": (19, 11448, 76.0512, None),
    "13-meg-ds-qwen7b-500steps": (500, 500, 18.988, 6.37),
    "15-meg-ds-3runs-appended": (50, 50, 25.6933, 4.7),
    "17-meg-ds-6runs-ip-prefix": (20, 20, 27.8327, 4.34),
    "19-mbridge-evo2-steptime-plus-iteration": (10, 100, 3.5912, 67.7),
    "21-mbridge-reduced-precision-notebook": (4, 4, 7.47, 1805.6),
    "23-mbridge-dgxc-1step-memory": (1, 1, 20.2891, None),
    "25-aws-mlm-srun-label-huge-total": (6, 27, 0.0884, None),
    "27-cloudai-mbridge-fixture": (1, 50, 9.089, 663.5),
    "29-a4x-step-time-only-run5": (20, 20, 2.23, 1174.3),
    "31-mlm-h100-timestamp-4steps": (4, 314, 0.1809, None),
    "33-openseek-flagscale-default0": (1, 1, 271.607, 40.4),
    "35-megatron-timer-iter-samples-sec": (1, 4, 270.1254, 449.6),
}


def iteration(
    number: int, total: int = 50, time_ms: float = 5741.5, loss: str = "lm loss: 6.5E+00 | ", end: str = "|"
) -> str:
    return (
        f" [2025-12-19 10:49:15] iteration {number:8d}/{total:8d} | consumed samples: {64 * number:12d} | elapsed time "
        f"per iteration (ms): {time_ms:.1f} | learning rate: 3.0E-05 | global batch size:    64 | {loss}loss scale: 1.0"
        f" | grad norm: 10.275 | number of skipped iterations:   0 | number of nan iterations:   0 {end}"
    )


def step_time(time_s: float, tflops: float, unit: str = "MODEL_TFLOP/s/GPU") -> str:
    return f"Step Time : {time_s:.2f}s GPU utilization: {tflops:.1f}{unit}"


def lines(*texts: str) -> bytes:
    return "".join(text + "\n" for text in texts).encode()


def parse(*blocks: bytes) -> list[Step | Notice]:
    parser = MegatronLog()
    return [item for block in blocks for item in parser.feed(block)] + list(parser.close())


def series(*blocks: bytes) -> StepSeries:
    found = StepSeries(first_step=1)
    found.add(parse(*blocks))
    return found


def brief(*blocks: bytes) -> list[tuple[int, float | None, float | None]]:
    return [(step.step, step.time_s, step.tflops_per_gpu) for step in series(*blocks).steps]


# What a line means


def test_an_iteration_line_gives_its_values() -> None:
    [step] = series(lines(iteration(7))).steps
    assert step == Step(
        step=7,
        time_s=5.7415,
        loss=6.5,
        other_values={
            "consumed samples": 448.0,
            "learning rate": 3e-05,
            "global batch size": 64.0,
            "loss scale": 1.0,
            "grad norm": 10.275,
            "number of skipped iterations": 0.0,
            "number of nan iterations": 0.0,
        },
    )
    assert series(lines(iteration(7, total=60))).total_steps == 60


@pytest.mark.parametrize(
    ("field", "name", "value"),
    [
        ("elapsed time per iteration (s): 105.22", "time_s", 105.22),
        ("elapsed time per iteration (ms): 2071.3/2085.4", "time_s", 2.0713),
        ("throughput per GPU (TFLOP/s/GPU): 449.6", "tflops_per_gpu", 449.6),
        ("TFLOPs: 147.29", "tflops_per_gpu", 147.29),
        ("tokens per gpu per second (tgs): 107.858", "tokens_per_s_per_gpu", 107.858),
        ("tokens per GPU (tokens/s/GPU): 3955.1/3902.0", "tokens_per_s_per_gpu", 3955.1),
        ("tokens/s/GPU inst/harmonic mean: 11214.7/11290.1", "tokens_per_s_per_gpu", 11214.7),
        ("compute per GPU (TFLOP/s/GPU): 512.3 (avg 510.1)", "tflops_per_gpu", 512.3),
        ("number of nan iterations:   0 | toks/s: 12345 | toks/s/gpu: 1543", "tokens_per_s_per_gpu", 1543),
        ("tokens/sec/gpu: 1234.5", "tokens_per_s_per_gpu", 1234.5),
        ("tokens/sec/GPU: 1234", "tokens_per_s_per_gpu", 1234),
        ("approx flops per GPU: 55.2TFLOPS", "tflops_per_gpu", 55.2),
        ("approx flops per GPU: 1.2PFLOPS", "tflops_per_gpu", 1200),
        ("lm-loss: 2.5E+00", "loss", 2.5),
        ("lm_loss: 2.5E+00", "loss", 2.5),
        ("loss: 2.5E+00", "loss", 2.5),
        ("loss: 3.5E+00 | lm loss: 2.5E+00", "loss", 3.5),  # not the loss of the model
        ("consumed tokens:    1.258B", "consumed tokens", 1.258e9),
        ("grad norm: 3.26m zeros: 0.0", "grad norm", 3.26),  # cut, and glued to the rest
        ("load_balancing_loss: 1.041994E+00", "load_balancing_loss", 1.041994),
        ("energy per GPU (J/iter/GPU): 421.5", "energy per GPU (J/iter/GPU)", 421.5),
        ("iteration time: 270.125 s samples/sec: 3.8", "iteration time", 270.125),
    ],
)  # fmt: skip
def test_the_names_of_every_fork_are_known(field: str, name: str, value: float) -> None:
    time = "" if "elapsed" in field else " elapsed time per iteration (ms): 10.0 |"
    [step] = series(f" iteration  3/ 50 | consumed samples:  8 |{time} {field} | x\n".encode()).steps
    assert step.other_values.get(name, getattr(step, name, None)) == value


@pytest.mark.parametrize(
    "prefix",
    ["", "  3: ", "[default7]:", "[default0]: ", "192.168.205.202: ", "ain_fp8_mx/0 ", "noise of another rank 1.5 |"],
)
@pytest.mark.parametrize("end", ["|", "|Number of parameters in billions:  6.98", "|[rank3]:[W1222 22:07:28] x: 4", ""])
def test_text_around_a_line_changes_nothing(prefix: str, end: str) -> None:
    plain, dressed = series(lines(iteration(3))).steps, series(lines(prefix + iteration(3, end=end))).steps
    assert list(dressed) == list(plain)


def test_lines_that_two_ranks_joined_are_two() -> None:
    assert brief(lines(iteration(3) + iteration(4, time_ms=80.0))) == [(3, 5.7415, None), (4, 0.08, None)]
    assert brief(lines(iteration(3) + step_time(5.74, 1636.8))) == [(3, 5.7415, 1636.8)]


def test_a_skipped_step_has_no_loss_and_is_a_step() -> None:
    [step] = series(lines(iteration(1, loss=""))).steps
    assert (step.loss, step.time_s) == (None, 5.7415)


@pytest.mark.parametrize(
    "line",
    [
        "saving checkpoint at iteration      50 to /x",
        "[Rank 0] (after 10 iterations) memory (GB) | mem-allocated-gigabytes: 13.373",
        " validation loss at iteration 50 | lm loss value: 1.35E+00 | lm loss PPL: 3.85E+00 |",
        "Step Time : 5.7",
        "Step Time : s GPU utilization: TFLOP/s/GPU",
        " iteration  3/ 50 | consumed samples:  8 | learning rate: 3E-5 |",
        "elapsed time per iteration (ms): 80.0 |",
        "completed step: 3, seconds: 2.0, TFLOP/s/device: 400.0, loss: 8.0",
    ],
)  # fmt: skip
def test_other_lines_give_no_step(line: str) -> None:
    assert brief(lines(line)) == []


def test_a_record_of_two_lines_is_one_step() -> None:
    whole = iteration(50)
    first, second = whole.split("| elapsed")
    assert brief(lines(f'"{first}| ",', f'     "elapsed{second}')) == [(50, 5.7415, None)]


@pytest.mark.parametrize(
    ("norm", "skipped", "words"),
    [
        ("grad norm: nan", "0", "the gradient norm of iteration 3 is NaN"),
        ("grad norm: 1.5", "1", "the loss of iteration 3 is NaN"),
    ],
)
def test_a_run_with_nan_gives_a_notice(norm: str, skipped: str, words: str) -> None:
    text = (
        iteration(3).replace("grad norm: 10.275", norm).replace("nan iterations:   0", f"nan iterations:   {skipped}")
    )
    found = series(lines(iteration(2), text, iteration(4)))
    assert found.nan
    assert [notice.text for notice in found.notices if notice.kind == "nan"] == [words]


def test_nan_at_the_first_iteration_of_a_second_run_in_the_log_is_not_lost() -> None:
    again = [iteration(1).replace("grad norm: 10.275", "grad norm: nan"), *map(iteration, range(2, 20))]
    assert series(lines(*map(iteration, range(1, 11)), *again)).nan


# The two kinds of line

TIMES = [125.4, 6.1, 4.66, 2.26, 3.54, 2.22, 2.23, 2.22, 3.47, 2.22]
RATES = [20.9, 426.6, 561.8, 1156.2, 738.3, 1179.6, 1172.9, 1178.7, 753.3, 1177.4]
PAIRS = list(zip(range(1, 11), TIMES, RATES, strict=True))


def kinds(unit: str = "MODEL_TFLOP/s/GPU") -> tuple[list[str], list[str]]:
    iterations = [iteration(number, time_ms=1000 * time) for number, time, _ in PAIRS]
    return iterations, [step_time(time, rate, unit) for _, time, rate in PAIRS]


@pytest.mark.parametrize("unit", ["TFLOP/s/GPU", "MODEL_TFLOP/s/GPU"])
@pytest.mark.parametrize("first", ["iteration", "step time", "in turns", "late"])
def test_the_two_kinds_are_joined_in_any_order(first: str, unit: str) -> None:
    iterations, step_times = kinds(unit)
    pairs = list(zip(iterations, step_times, strict=True))
    texts = {
        "iteration": [text for pair in pairs for text in pair],
        "step time": [text for pair in pairs for text in reversed(pair)],
        "in turns": [text for place, pair in enumerate(pairs) for text in (pair if place % 2 else reversed(pair))],
        "late": [*iterations[:2], *[text for pair in zip(step_times, iterations[2:], strict=False) for text in pair],
                 *step_times[8:]],
    }[first]  # fmt: skip
    assert brief(lines(*texts)) == PAIRS


@given(order=st.lists(st.booleans(), max_size=20))
def test_ranks_that_drift_apart_lose_nothing(order: list[bool]) -> None:
    kind = [iter(texts) for texts in kinds()]
    mixed = [next(kind[int(which)], "") for which in order]
    assert brief(lines(*mixed, *kind[0], *kind[1])) == PAIRS


@pytest.mark.parametrize("iterations_first", [True, False])
def test_ranks_with_logs_of_their_own_are_joined(tmp_path: Path, *, iterations_first: bool) -> None:
    logs = [tmp_path / "0.log", tmp_path / "1.log"]
    for log, texts in zip(logs, kinds(), strict=True):
        log.write_bytes(lines("noise", *texts))
    parser, found = MegatronLog(), StepSeries(first_step=1)
    for log in logs if iterations_first else reversed(logs):
        found.add(parser.feed(log.read_bytes(), log.name))
    found.add(parser.close())
    assert [(step.step, step.time_s, step.tflops_per_gpu) for step in found.steps] == PAIRS


def test_a_line_without_its_counterpart_does_not_shift_the_others() -> None:
    iterations, step_times = kinds()
    mixed = [text for pair in zip(step_times, iterations, strict=True) for text in pair]
    without_iteration = brief(lines(*mixed[:3], *mixed[4:]))
    without_step_time = brief(lines(*mixed[:2], *mixed[3:]))
    assert without_iteration == [pair for pair in PAIRS if pair[0] != 2]
    assert without_step_time == [(number, time, None if number == 2 else rate) for number, time, rate in PAIRS]


def test_the_rate_of_the_iteration_line_itself_counts() -> None:
    own = iteration(3).replace("| learning", "| throughput per GPU (TFLOP/s/GPU): 1640.2 | learning")
    assert brief(lines(step_time(5.74, 1636.8), own)) == [(3, 5.7415, 1640.2)]


def test_step_times_alone_are_counted_from_1_when_the_log_is_over() -> None:
    parser = MegatronLog()
    assert parser.feed(lines(*kinds()[1])) == []
    assert [(step.step, step.time_s) for step in parser.close() if isinstance(step, Step)] == [
        (number, time) for number, time in enumerate(TIMES, start=1)
    ]


# Several runs, and how the bytes come


def test_step_times_alone_that_are_printed_twice_count_once() -> None:
    times = [step_time(each, 400.0 / each) for each in (9.1, 5.7, 5.8, 5.7)]
    twice = [line for line in times for _ in range(2)]
    assert [*series(lines(*twice)).steps] == [*series(lines(*times)).steps]


def test_equal_step_times_alone_are_steps_of_their_own() -> None:
    assert series(lines(*[step_time(5.7, 400.0)] * 8)).count == 8


def test_the_last_of_several_runs_in_one_file_counts() -> None:
    first, second = kinds(), [iteration(number, time_ms=80.0 + number) for number in range(1, 9)]
    found = series(lines(*first[0], "=== END ===", *second))
    assert (found.attempt, found.count) == (1, 8)
    assert [step.time_s for step in found.steps] == [round(0.08 + number / 1000, 4) for number in range(1, 9)]


def test_iterations_repeated_after_a_restart_replace_the_earlier() -> None:
    before = [iteration(number, time_ms=100.0) for number in range(1, 31)]
    after = [iteration(number, time_ms=200.0) for number in range(21, 51)]
    found = series(lines(*before, *after))
    assert found.count == 50
    assert [step.time_s for step in found.steps] == [0.1] * 20 + [0.2] * 30


@given(places=st.lists(st.integers(min_value=0), max_size=30), ending=st.sampled_from(["\n", "\r\n"]))
def test_the_result_does_not_depend_on_block_sizes(places: list[int], ending: str) -> None:
    iterations, step_times = kinds()
    text = ending.join(["noise", *[line for pair in zip(step_times, iterations, strict=True) for line in pair], ""])
    assert brief(*cut(text.encode(), places)) == PAIRS


@given(place=st.integers(min_value=0))
def test_a_truncated_log_gives_no_value_that_was_not_printed(place: int) -> None:
    text = lines(step_time(5.74, 1636.8), iteration(1), step_time(5.74, 1636.8), iteration(2))
    kept = text[: place % len(text)]
    for step in series(kept).steps:
        assert step.time_s in (5.7415, 5.74)
        assert step.tflops_per_gpu in (None, 1636.8)
        assert set(step.other_values.values()) <= {64.0, 128.0, 3e-05, 1.0, 10.275, 0.0}


# Real logs


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared logs are not here")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_log_has_the_values_of_its_source(name: str) -> None:
    data = (SHARED / f"{name}.log").read_bytes()
    found = series(data)
    last = found.last_step
    assert last is not None
    assert (len(found.steps), last.step, last.time_s, last.tflops_per_gpu) == EXPECTED[name]
    assert not found.nan


def same(found: StepSeries) -> list[str]:
    return [repr(attrs.evolve(step, attempt=0)) for step in found.steps]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared logs are not here")
@pytest.mark.parametrize("name", EXPECTED)
@settings(max_examples=4)
@given(places=st.lists(st.integers(min_value=0), max_size=8), label=st.sampled_from(["", "  3: "]))
def test_a_real_log_gives_the_same_with_crlf_labels_and_any_chunks(
    name: str, places: Sequence[int], label: str
) -> None:
    data = (SHARED / f"{name}.log").read_bytes()
    text = b"".join(label.encode() + line + b"\r\n" for line in data.split(b"\n"))
    assert same(series(*cut(text, places))) == same(series(data + b"\n"))


def test_every_real_log_is_tested() -> None:
    if SHARED.is_dir():
        assert {path.stem for path in SHARED.glob("*.log")} == set(EXPECTED)


def test_nan_is_not_a_number_that_means_anything() -> None:
    [step] = series(lines(iteration(3).replace("lm loss: 6.5E+00", "lm loss: nan"))).steps
    assert step.loss is not None
    assert math.isnan(step.loss)


# Our own: Megatron-Bridge 0.3.1 on a CPU, see test_pretrain.py


def test_the_golden_log_gives_every_step() -> None:
    found = series((GOLDEN / "megatron-bridge-0.3.1-cpu.log").read_bytes())
    assert [step.step for step in found.steps] == list(range(1, 51))
    assert (found.total_steps, found.nan, found.attempt) == (50, False, 0)
    assert found.steps[34].other_values["consumed samples"] == 280.0
    assert (found.steps[-1].loss, found.steps[-1].tflops_per_gpu) == (2.189851, 0.0)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_golden_logs_of_two_ranks_are_one_run(order: tuple[int, int]) -> None:
    parser, found = MegatronLog(), StepSeries(first_step=1)
    for rank in order:
        log = GOLDEN / f"megatron-bridge-0.3.1-cpu-rank{rank}of2.log"
        found.add(parser.feed(log.read_bytes(), log.name))
    found.add(parser.close())
    assert [step.step for step in found.steps] == list(range(1, 51))
    assert found.steps[0].time_s == 0.177


def test_a_time_printed_each_tenth_iteration_is_the_mean_of_ten() -> None:
    found = series(*(lines(iteration(number)) for number in (10, 20, 30, 35)))
    assert [step.mean_of for step in found.steps] == [10, 10, 10, 5]
    assert summarise(found.steps, (11, 30)).mean_of == 10


@pytest.mark.parametrize("figures", ["5.75.74s GPU utilization: 1636.8", "5.74s GPU utilization: 16.36.8"])
def test_a_step_time_whose_figures_are_none_is_no_step(figures: str) -> None:
    assert read(MegatronLog, f"Step Time : {figures}MODEL_TFLOP/s/GPU\n".encode()) == []


@pytest.mark.parametrize("numbered", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_garbled_log_does_not_stop_the_parser(numbered: bool) -> None:
    lines = [iteration(number) if numbered else "" for number in range(1, 11)]
    log = "".join(f"{line}\n{step_time(5.74, 1636.8)}\n" for line in lines)
    assert all(read(MegatronLog, each) for each in garbled(log.encode()))


# Copies of logs, and other wordings


def wrap(text: str, width: int) -> str:
    return "\n".join(text[place : place + width] for place in range(0, len(text), width))


@pytest.mark.parametrize(
    "wrapped",
    [
        *(lambda text, width=width: wrap(text, width) for width in (50, 60, 72, 80, 100, 132)),
        lambda text: "\n".join(textwrap.wrap(text, 80)),
        lambda text: text.replace("| ", "|\n"),
        lambda text: text.replace(" | ", "\n| "),
    ],
    ids=["50", "60", "72", "80", "100", "132", "words", "fields", "fields with bars"],
)
def test_wrapped_lines_are_one_record(wrapped: Callable[[str], str]) -> None:
    text = "".join(wrapped(iteration(number)) + "\n" for number in range(1, 12))
    other = "validation loss at iteration 5 | lm loss value: 9.0 |\n"

    found = series(f"{text}{other}".encode()).steps

    assert [step.step for step in found] == list(range(1, 12))
    assert {(step.time_s, step.loss) for step in found} == {(5.7415, 6.5)}
    assert {step.other_values.get("grad norm", step.other_values.get("gradnorm")) for step in found} == {10.275}


@pytest.mark.parametrize("line", ["Step Time: 0.50s , 32680.36 tok/s/gpu", "Step Time : 0.50s, 32680.36 tok/s/gpu"])
def test_a_step_time_may_have_tokens_per_second(line: str) -> None:
    [step] = [item for item in parse(lines(line)) if isinstance(item, Step)]

    assert (step.step, step.time_s, step.tokens_per_s_per_gpu, step.tflops_per_gpu) == (1, 0.5, 32680.36, None)


def test_a_step_time_may_have_tokens_and_flops_per_second() -> None:
    line = "Step Time: 0.25s , 2048.50 tok/s/gpu, GPU utilization: 81.5 MODEL_TFLOP/s/GPU , Peak Mem: 40.5GB"

    [step] = [item for item in parse(lines(line)) if isinstance(item, Step)]

    assert (step.time_s, step.tokens_per_s_per_gpu, step.tflops_per_gpu) == (0.25, 2048.5, 81.5)


def test_the_throughput_has_two_names() -> None:
    [step] = series(lines(iteration(1, loss="throughput (TFLOP/s/GPU): 663.5 | "))).steps

    assert step.tflops_per_gpu == 663.5


def test_a_run_that_stops_at_its_exit_interval_is_complete() -> None:
    line = (
        " iteration %d/ 1000 | elapsed time per iteration (ms): 10.0 | lm loss: 1.5 | number of nan iterations: 0 |\n"
    )
    run = "".join(line % number for number in (1, 2, 3))
    stopped = f"{run}[exiting program at iteration 3] datetime: 2026-01-01 10:00:00\n"

    assert series(stopped.encode()).total_steps == 3
    assert series((stopped + run).encode()).total_steps == 1000
    reached = (
        f"{run}[rank-0/8][INFO] : [EarlyStop] Reached target! Stopping training. eval_loss: 3.29 | duration: 5.2 |\n"
    )
    assert series(reached.encode()).total_steps == 3


def test_a_duration_of_two_units_is_no_figure() -> None:
    record = (
        " iteration 1/ 9 | elapsed time per iteration (ms): 10.0 | elapsed time: 3m 12s | remaining time: 16h 12m 43s"
        " | kl: 1.5E-02 | number of nan iterations: 0 |\n"
    )
    (step,) = series(record.encode()).steps
    assert step.other_values == {"kl": 0.015, "number of nan iterations": 0.0}


def test_a_line_with_bars_after_a_record_is_no_part_of_it() -> None:
    record = " iteration 1/ 9 | elapsed time per iteration (ms): 10.0 | lm loss: 1.5 |\n"
    others = "evaluated\n[TimeToTrain] status: success | samples_count: 172032 | throughput: 29.27\n"

    (step,) = series((record + others).encode()).steps
    assert "samples_count" not in step.other_values


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "[exiting program after receiving SIGTERM.] datetime: 2026-01-01",
            "unknown: the job received SIGTERM and stopped after a checkpoint",
        ),
        ("[exiting program after 230.5 minutes] datetime: 2026-01-01", "the training stopped at its own time limit"),
        (
            "Exiting program due to straggler detection.",
            "the straggler detection found slow GPUs and stopped the training",
        ),
    ],
)
def test_the_reason_of_an_early_stop(tmp_path: Path, line: str, cause: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f" iteration 1/ 9 | elapsed time per iteration (ms): 10.0 | lm loss: 1.5 |\n{line}\n")

    parsed = llmb.parse([log], framework="megatron_bridge")

    assert parsed.failure
    assert (parsed.status, parsed.failure.cause) == ("incomplete", cause)
