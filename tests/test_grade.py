"""``llmb grade``: the judgement of existing logs against a published configuration."""

from __future__ import annotations

import itertools
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path

import pytest
from parts.command_line import Answer, Llmb, command_line
from rich.console import Console

import llmb as library
from llmb.cli import output
from llmb.cli.commands.grade import grade as grade_command

SHARED = Path(__file__).parents[2] / "shared" / "logs"
PUBLISHED_S = 6.999  # maxtext/llama2-70b, h100, bf16, 64 GPUs
POINT = ("--recipe", "maxtext/llama2-70b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
KEYS = [
    *("status", "metrics", "verdict", "reason", "failure", "steady_state", "recipe", "gpu_type", "dtype", "gpus"),
    *("variant", "framework", "window", "measured_over", "interval", "more_repeats", "repeats", "notes"),
    *("rank_times", "runs"),
]
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
OUT_OF_MEMORY = "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.95GiB\n"


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.fixture
def grade(llmb: Llmb) -> Llmb:
    """Run ``llmb grade`` against a published configuration of maxtext, with more arguments."""
    return lambda *arguments: llmb("grade", *arguments, *POINT)


def write(path: Path, times_s: Sequence[float], end: str = "") -> Path:
    lines = [
        f"completed step: {step}, seconds: {time_s:.4f}, TFLOP/s/device: {3641.5 / time_s:.3f}, loss: 8.0\n"
        for step, time_s in enumerate(times_s)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines) + end)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """Return a log of 50 steps of so many seconds, after a slow first one."""
    first_s = itertools.count(40)  # no two logs are copies
    return lambda time_s, name="run.log", **more: write(tmp_path / name, [next(first_s), *[time_s] * 49], **more)


@pytest.mark.parametrize(
    ("ratio", "verdict", "more", "status"),
    [(1.0, "pass", None, 0), (1.03, "pass", None, 0), (1.045, "undecided", 4, 0), (1.08, "fail", None, 3)],
)
def test_a_log_is_judged_with_a_margin(
    grade: Llmb, log: Callable[..., Path], ratio: float, verdict: str, more: int | None, status: int
) -> None:
    answer = grade(log(PUBLISHED_S * ratio), "--check", "--json")
    document = answer.json

    assert (answer.status, list(document)) == (status, KEYS)
    assert (document["verdict"], document["more_repeats"], document["measured_over"]) == (verdict, more, "window")
    low, high = document["interval"]
    assert low < ratio < high
    assert document["window"].keys() == {"first", "last", "count", "step_time_s", "step_time_std_s"}
    assert document["metrics"]["baseline"]["step_time_ratio"] == pytest.approx(ratio, abs=1e-4)
    assert (document["steady_state"]["first"], document["status"]) == (1, "complete")


def test_a_step_time_that_the_gpus_cannot_reach_never_passes(grade: Llmb, log: Callable[..., Path]) -> None:
    answer = grade(log(PUBLISHED_S * 0.4), "--json")
    document = answer.json
    assert document["metrics"]["mfu"] > 1
    assert (answer.status, document["verdict"], document["interval"]) == (0, "undecided", None)
    assert document["reason"].startswith("MFU above 100 % is impossible (131.")
    assert grade(log(PUBLISHED_S * 0.4)).out.count("MFU above 100 %") == 1


def test_a_repeat_that_the_gpus_cannot_reach_is_left_out(grade: Llmb, log: Callable[..., Path]) -> None:
    document = grade(log(PUBLISHED_S, "a"), log(0.1, "b"), "--repeats", "--json").json
    assert (document["verdict"], [each["left_out"] for each in document["repeats"]]) == ("pass", [False, True])
    assert "repeat 2 is left out: MFU above 100 % is impossible" in document["reason"]
    assert document["metrics"]["step_time_s"] == pytest.approx(PUBLISHED_S, abs=1e-4)


def test_a_log_of_another_batch_size_is_not_judged(grade: Llmb, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    for tokens, verdict in ((8192, "pass"), (4096, "undecided")):
        rate = f"TFLOP/s/device: 500.0, Tokens/s/device: {tokens / PUBLISHED_S:.3f}, total_weights: {64 * tokens}"
        line = f"completed step: {{}}, seconds: {PUBLISHED_S}, {rate}, loss: 8.0\n"
        log.write_text("".join(map(line.format, range(50))))
        document = grade(log, "--json").json
        assert document["verdict"] == verdict
    assert document["reason"] == (
        "not comparable with the baseline: a step of the log has 4,096 tokens per GPU, a step of the recipe 8,192"
    )
    assert document["interval"] is None


@pytest.mark.parametrize(
    ("samples", "size", "reason"),
    [
        (128, "", "ratio 1.000"),
        (512, "", "not comparable with the baseline: the log has a global batch size of 512, the recipe 128"),
        (512, "global_batch_size: 128.0 | ", "ratio 1.000"),
        (
            128,
            "global_batch_size: 64 | ",
            "not comparable with the baseline: the log has a global batch size of 64, th",
        ),
    ],
)
def test_a_log_that_prints_another_batch_size_is_not_judged(
    llmb: Llmb, tmp_path: Path, samples: int, size: str, reason: str
) -> None:
    log = tmp_path / "run.log"
    log.write_text(
        "".join(
            f"Training epoch 0, iteration {step}/49 | lr: 1e-05 | {size}global_step: {step} | "
            "reduced_train_loss: 11.03 | "
            f"train_step_timing in s: 14.72 | consumed_samples: {samples * (step + 1)}\n"
            for step in range(50)
        )
    )
    point = ("--recipe", "nemo_launcher/llama3.1-70b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
    document = llmb("grade", log, *point, "--json").json
    assert document["reason"].startswith(reason)
    note = "tokens/s, TFLOP/s and MFU count the recipe's batch, not that of the log"
    assert (note in document["notes"]) == reason.startswith("not comparable")


@pytest.mark.parametrize(("gpus", "verdict"), [(64, "pass"), (128, "undecided")])
def test_the_batch_size_of_a_log_of_one_line_is_that_of_all_its_steps(
    llmb: Llmb, tmp_path: Path, gpus: int, verdict: str
) -> None:
    log = tmp_path / "run.log"
    progress = "Epoch 0: : 100%|##########| 100/100 [20:15<00:00, reduced_train_loss=6.370, global_step=99.00, "
    log.write_text(f"{progress}consumed_samples=12800.0, train_step_timing in s=11.00]\n")
    point = ("--recipe", "nemo_launcher/llama3.1-70b", "--gpu-type", "h100", "--dtype", "fp8", "--gpus", gpus)
    document = llmb("grade", log, *point, "--json").json
    assert document["verdict"] == verdict
    assert ("the log has a global batch size of 128, the recipe 256" in document["reason"]) == (gpus == 128)


def test_a_dash_is_standard_input(log: Callable[..., Path]) -> None:
    text = log(PUBLISHED_S).read_text()
    done = subprocess.run(
        [sys.executable, "-m", "llmb", "grade", "-", *POINT], input=text, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("pass  ")


def test_a_log_with_several_runs_has_a_note(grade: Llmb, log: Callable[..., Path], tmp_path: Path) -> None:
    both = tmp_path / "both.log"
    both.write_text(log(PUBLISHED_S * 1.5).read_text() + log(PUBLISHED_S).read_text())
    document = grade(both, "--json").json
    assert (document["verdict"], document["notes"]) == (
        "pass",
        ["both.log has 2 runs, and only the last one is graded"],
    )
    assert grade(log(PUBLISHED_S), "--json").json["notes"] == []


def test_logs_of_two_runs_are_not_judged_as_ranks_of_one(grade: Llmb, log: Callable[..., Path]) -> None:
    fast, slow = log(PUBLISHED_S, "fast"), log(PUBLISHED_S * 1.5, "slow")
    for logs in ((fast, slow), (slow, fast)):
        document = grade(*logs, "--json").json
        assert (document["verdict"], document["interval"]) == ("undecided", None)
        assert document["reason"] == (
            f"the logs are not of one run: a step takes 6.999 s in {fast} and 10.5 s in {slow}; "
            "if each log is a run, name each log with --repeats"
        )
    assert grade(fast, log(PUBLISHED_S * 1.02, "rank"), "--json").json["verdict"] == "pass"


def test_the_grade_names_the_published_configuration(llmb: Llmb, log: Callable[..., Path]) -> None:
    point = ("--gpu-type", "gb200", "--dtype", "fp8", "--gpus", "128")
    arguments = ("grade", log(5.0), "--recipe", "megatron_bridge/llama3.1-405b@25.12", *point, "--json")
    default, named = (llmb(*arguments, *more).json for more in ((), ("--variant", "mxfp8")))

    shared = {"recipe": "megatron_bridge/llama3.1-405b@25.12.02", "gpu_type": "gb200", "dtype": "fp8", "gpus": 128}
    assert {key: default[key] for key in shared} == {key: named[key] for key in shared} == shared
    assert (default["variant"], named["variant"]) == ("cs", "mxfp8")


def test_a_proxy_is_named_as_such(llmb: Llmb, log: Callable[..., Path]) -> None:
    point = ("--gpu-type", "h100", "--dtype", "bf16", "--gpus", "32")
    answer = llmb("grade", log(8.85), "--recipe", "nemo_launcher/llama3.1-405b", *point, "--json")
    assert "proxy: the model is not the recipe's (7 of 126 layers, sequences of 8192 tokens)" in answer.json["notes"]


def test_a_proxy_of_all_layers_is_named_by_its_hidden_size(llmb: Llmb, log: Callable[..., Path]) -> None:
    point = ("--gpu-type", "gb300", "--dtype", "bf16", "--gpus", "72")
    answer = llmb("grade", log(8.85), "--recipe", "megatron_bridge/deepseek-v3@26.06", *point, "--json")
    sizes = "61 of 61 layers, hidden size 1024 of 7168, sequences of 4096 tokens"
    assert f"proxy: the model is not the recipe's ({sizes})" in answer.json["notes"]


def test_a_saved_log_is_shown_like_a_run(grade: Llmb, llmb: Llmb, log: Callable[..., Path]) -> None:
    saved = grade(log(PUBLISHED_S * 1.08), "--save", "--json")
    [run_id] = saved.json["runs"]
    shown = llmb("show", run_id, "--json").json
    assert (shown["imported"], shown["verdict"], shown["reason"]) == (True, "fail", saved.json["reason"])
    assert shown["metrics"] == saved.json["metrics"]
    assert "from an existing log" in llmb("show", run_id).out
    assert "completed step: 49" in llmb("logs", run_id).out


def test_without_check_a_slow_log_exits_with_0(grade: Llmb, log: Callable[..., Path]) -> None:
    assert grade(log(PUBLISHED_S * 1.5)).status == 0


def test_check_notes_what_exit_code_0_means_for_an_undecided_log(grade: Llmb, log: Callable[..., Path]) -> None:
    note = "llmb: --check: the verdict is undecided; exit code 0 means only that no verdict is fail\n"
    undecided, passed = log(PUBLISHED_S * 1.045, "undecided.log"), log(PUBLISHED_S, "passed.log")
    assert grade(undecided, "--check").err.endswith(note)
    assert grade(undecided).err == grade(passed, "--check").err == ""


def test_the_tolerance_is_an_option(grade: Llmb, log: Callable[..., Path]) -> None:
    assert grade(log(PUBLISHED_S * 1.08), "--tolerance", "0.1", "--json").json["verdict"] == "pass"


def test_the_default_tolerance_is_that_of_the_library() -> None:
    of_command, of_library = (signature(each).parameters["tolerance"] for each in (grade_command, library.grade))
    assert of_command.default == of_library.default


def test_a_checkpoint_in_the_window_is_not_a_failure(grade: Llmb, tmp_path: Path) -> None:
    path = write(tmp_path / "run.log", [40.0, *[7.0] * 48, 30.0])
    document = grade(path, "--check", "--json").json
    assert (document["verdict"], document["more_repeats"]) == ("undecided", None)
    assert document["reason"].startswith("the window (step 49, 30 s) took 4.29 x the steady state (7 s, steps 1 to 49)")
    assert grade(path, "--window", "35:44", "--json").json["verdict"] == "pass"


def test_repeats_are_judged_together_and_one_with_a_checkpoint_is_left_out(
    grade: Llmb, log: Callable[..., Path], tmp_path: Path
) -> None:
    stalled = write(tmp_path / "b.log", [40.0, *[7.0] * 48, 30.0])
    paths = [log(7.0, "a.log"), stalled, log(7.1, "c.log")]
    document = grade(*paths, "--repeats", "--json").json
    assert (document["verdict"], document["steady_state"]) == ("pass", None)
    assert [(each["path"], each["left_out"]) for each in document["repeats"]] == [
        (str(path), path == stalled) for path in paths
    ]
    assert document["window"]["step_time_s"] == document["metrics"]["step_time_s"] == pytest.approx(7.05)
    assert "repeat 2 is left out: the window (step 49, 30 s)" in document["reason"]


def test_without_a_repeat_that_counts_there_is_no_mean(grade: Llmb, log: Callable[..., Path]) -> None:
    paths = [log(2.0, f"{name}.log") for name in "ab"]  # faster than the GPUs can be
    document = grade(*paths, "--repeats", "--json").json
    assert document["verdict"] == "undecided"
    assert [document[key] for key in ("metrics", "window", "measured_over")] == [None, None, None]
    assert [each["step_time_s"] for each in document["repeats"] if each["left_out"]] == [2.0, 2.0]
    shown = grade(*paths, "--repeats").out
    assert re.search(r"  repeat 2  +2.000 s, steady state 2.000 s, /\S+/b.log; left out\n", shown)
    assert "repeats that count" not in shown
    assert "tokens/s" not in shown
    assert grade(paths[0], "--json").json["metrics"]["step_time_s"] == 2.0  # of a single run, which is undecided too


def test_more_repeats_narrow_the_interval(grade: Llmb, log: Callable[..., Path]) -> None:
    widths = []
    for count in (1, 2, 4):
        low, high = grade(*(log(7.0, f"{each}.log") for each in range(count)), "--repeats", "--json").json["interval"]
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 2 * widths[2]


def test_a_directory_of_one_log_per_rank_is_one_run(grade: Llmb, tmp_path: Path) -> None:
    for rank in range(3):
        write(tmp_path / "ranks" / f"rank{rank}.log", [40.0, *[7.0] * 49])
    document = grade(tmp_path / "ranks", "--json").json
    assert (document["verdict"], len(document["repeats"]), document["window"]["last"]) == ("pass", 1, 49)


def test_a_copy_of_a_log_is_no_repeat(grade: Llmb, log: Callable[..., Path]) -> None:
    path = log(7.0)
    once = grade(path, "--json").json
    twice = grade(path, path, "--repeats", "--json").json
    assert (twice["verdict"], twice["interval"]) == ("pass", once["interval"])
    assert [each["left_out"] for each in twice["repeats"]] == [False, True]
    assert twice["reason"].endswith("repeat 2 is left out: the same log as repeat 1")


def test_a_missing_window_is_undecided_and_metrics_are_those_of_the_steady_state(grade: Llmb, tmp_path: Path) -> None:
    document = grade(write(tmp_path / "short.log", [40.0, *[7.0] * 19]), "--window", "35:44", "--json").json
    assert (document["verdict"], document["window"], document["interval"]) == ("undecided", None, None)
    assert (document["measured_over"], document["metrics"]["step_time_s"]) == ("steady_state", 7.0)
    assert document["reason"] == (
        "steps 35 to 44 are not in the log (it has 0 to 19); "
        "the steady state, steps 1 to 19, takes 7 s per step, 1.000 x the published step time"
    )


def test_a_log_without_window_and_steady_state_has_no_metrics(grade: Llmb, tmp_path: Path) -> None:
    document = grade(write(tmp_path / "short.log", [7.0] * 5), "--window", "35:44", "--json").json
    assert (document["verdict"], document["metrics"], document["measured_over"]) == ("undecided", None, None)
    assert document["reason"].endswith("there is no steady state, because fewer than 8 steps have a time")


def test_the_log_of_another_framework_is_recognised_and_gets_no_verdict(llmb: Llmb, log: Callable[..., Path]) -> None:
    point = ("--recipe", "nemo_launcher/llama3.1-70b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
    answer = llmb("grade", log(7.0), *point, "--json")
    assert (answer.status, answer.json["framework"], answer.json["verdict"]) == (0, "maxtext", None)
    assert answer.json["reason"] == "written by maxtext; the recipe is for nemo_launcher"
    assert answer.json["metrics"]["step_time_s"] == 7.0


def test_a_failed_run_is_undecided_with_its_cause(grade: Llmb, log: Callable[..., Path]) -> None:
    path = log(7.0, end=OUT_OF_MEMORY)
    answer = grade(path, "--steps", "100", "--json")
    assert (answer.status, answer.json["verdict"]) == (1, "undecided")
    cause = answer.json["failure"]["cause"]
    assert answer.json["reason"] == f"the run did not complete: {cause}"
    assert f"cause         {cause}\n" in grade(path, "--steps", "100").out


def test_a_nan_loss_is_a_failed_run(grade: Llmb, tmp_path: Path) -> None:
    path = write(tmp_path / "run.log", [7.0] * 20, end="completed step: 20, seconds: 7.0, loss: nan\n")
    answer = grade(path, "--json")
    assert (answer.status, answer.json["verdict"]) == (1, "undecided")
    assert answer.json["reason"] == "the loss was NaN, so the run trained nothing"


def test_a_log_without_a_step(grade: Llmb, tmp_path: Path) -> None:
    path = tmp_path / "other.log"
    path.write_text("hello\n")
    answer = grade(path, "--json")
    assert (answer.status, answer.json["verdict"], answer.json["status"]) == (1, "undecided", "no_data")
    assert answer.json["metrics"] is None
    assert answer.json["reason"] == "no maxtext steps found, and no other installed framework recognises the log"
    path.write_text(OUT_OF_MEMORY)
    assert grade(path, "--json").json["reason"].startswith("no maxtext steps found, and the run failed: ")
    path.write_text("")
    assert grade(path, "--json").json["reason"] == "the log is empty"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.log", *POINT], "missing.log"),
        (["missing.log", *POINT[:-1], "65"], "has no configuration for 65 GPUs"),
        (["missing.log", *POINT, "--window", "5:2"], "expected last, or FIRST:LAST"),
        (["missing.log", "--recipe", "maxtext/nothing", *POINT[2:]], "maxtext/nothing"),
        ([*POINT], "LOG"),
        (["missing.log", *POINT, "--tolerance", "nan"], "--tolerance: nan is out of range"),
        (["missing.log", *POINT, "--tolerance", "5"], "--tolerance: 5 is out of range; expected a fraction such as"),
    ],
)
def test_invalid_arguments_exit_with_2(llmb: Llmb, arguments: list[str], message: str) -> None:
    answer = llmb("grade", *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": (44, 35)}, 'window: invalid window (44, 35); expected "last" or (first, last) from 0 on'),
        ({"window": (-5, 3)}, "window: invalid window (-5, 3)"),
        ({"steps": 0}, "steps: invalid value 0; expected a positive integer"),
        ({"run": 0}, "run: invalid value 0; expected a positive integer"),
    ],
)
def test_the_library_rejects_numbers_that_no_log_has(
    log: Callable[..., Path], arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(library.LlmbError, match=re.escape(message)):
        library.parse(log(PUBLISHED_S), framework="maxtext", **arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tolerance", "0"), "--tolerance: invalid value 0.0; expected a number above 0 and below 1"),
        (("--window", "100:200"), "--window: window [100, 200] is outside the run's 50 steps"),
    ],
)
def test_values_that_cannot_be_recorded_are_named_as_options(
    grade: Llmb, log: Callable[..., Path], options: tuple[str, ...], message: str
) -> None:
    answer = grade(log(PUBLISHED_S), *options, "--save")
    assert answer.status == 2
    assert answer.err.startswith(f"llmb: {message}")


def test_the_library_returns_what_json_prints(grade: Llmb, log: Callable[..., Path]) -> None:
    path = log(7.2)
    found = library.grade(path, recipe="maxtext/llama2-70b", gpu_type="h100", dtype="bf16", gpus=64)
    assert json.loads(json.dumps(found.as_dict())) == grade(path, "--json").json


UNDECIDED_80 = """\
undecided  ratio 1.039, between 1.026 and 1.051; the limit is 1.05
           about 1 more repeat would settle it
  published     6.999 s per step (release 24.11)
  measured      7.270 s, step 49 (the window of this recipe)
  steady state  7.269 s, steps 1 to 49; no spikes, drift +0.0 %
  tokens/s      72,117    MFU 50.64 %    days to 1T tokens 160.5
"""
UNDECIDED_200 = """\
undecided  ratio 1.039, between 1.026 and 1.051; the limit is 1.05; about 1 more repeat would settle it
"""
CHECKPOINT_80 = """\
undecided  the window (step 49, 30 s) took 4.29 x the steady state (7 s, steps 1
           to 49); it may include a checkpoint
  published     6.999 s per step (release 24.11)
"""


def screen(grade: Llmb, monkeypatch: pytest.MonkeyPatch, width: int, *arguments: object, color: bool = False) -> Answer:
    """Return the answer on a terminal of this width."""

    def console(**_options: object) -> Console:
        system = "standard" if color else None
        return Console(file=sys.stdout, width=width, force_terminal=True, color_system=system, highlight=False)

    with monkeypatch.context() as patch:
        patch.setattr(output, "console", console)
        return grade(*arguments)


def test_the_screen_of_an_undecided_log(grade: Llmb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(3)
    path = write(tmp_path / "run.log", [40.0, *(draw.gauss(7.27, 0.007) for _ in range(48)), 7.27])
    narrow = screen(grade, monkeypatch, 80, path).out
    assert narrow == UNDECIDED_80
    assert screen(grade, monkeypatch, 200, path).out == UNDECIDED_200 + "".join(narrow.splitlines(keepends=True)[2:])
    coloured = screen(grade, monkeypatch, 80, path, color=True).out
    assert coloured.startswith("\x1b[33mundecided  \x1b[0m")
    assert ESCAPE.sub("", coloured) == narrow


def test_the_screen_of_a_window_with_a_checkpoint(grade: Llmb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "run.log", [40.0, *[7.0] * 48, 30.0])
    assert screen(grade, monkeypatch, 80, path).out.startswith(CHECKPOINT_80)


def test_the_screen_of_repeats(grade: Llmb, log: Callable[..., Path]) -> None:
    shown = grade(log(8.0, "a.log"), log(8.1, "b.log"), "--repeats").out
    assert re.match(r"fail       ratio 1.150, between 1.139 and 1.161; the limit is 1.05\n", shown)
    assert "  measured   8.050 s, step 49 (the mean of the repeats that count)\n" in shown
    assert re.search(r"  repeat 2   8.100 s, steady state 8.100 s, /\S+/b.log\n", shown)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared logs are not here")
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)], ids=["each seventh", "each"])
@pytest.mark.parametrize(
    ("recipe", "folder", "failures"),
    [
        ("maxtext/llama2-70b", "maxtext", slice(0, None, 3)),
        ("nemo_launcher/llama3.1-70b", "nemo", slice(1, None, 3)),
        ("megatron_bridge/llama3.1-70b@25.12", "megatron", slice(2, None, 3)),
    ],
)
def test_every_real_log_has_a_verdict_or_a_reason(
    llmb: Llmb, recipe: str, folder: str, failures: slice, step: int
) -> None:
    logs = [*sorted(SHARED.glob(f"{folder}/*.log")), *sorted(SHARED.glob("failure/*.log"))[failures]]
    for path in logs[::step]:
        point = ("--recipe", recipe, "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
        answer = llmb("grade", path, *point, "--json")
        assert answer.status in (0, 1), path
        assert answer.json["verdict"] in (None, "pass", "fail", "undecided"), path
        assert answer.json["reason"], path
