"""Explanations of ``llmb grade`` for logs that it cannot judge, such as short ones and those of another variant."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

POINT = ("--recipe", "maxtext/llama2-70b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.fixture
def grade(llmb: Llmb) -> Llmb:
    """Run ``llmb grade`` against a published configuration of maxtext, with more arguments."""
    return lambda *arguments: llmb("grade", *arguments, *POINT)


def write(path: Path, times_s: Sequence[float]) -> Path:
    """Write a log of MaxText with steps of so many seconds."""
    lines = [
        f"completed step: {step}, seconds: {time_s:.4f}, TFLOP/s/device: {3641.5 / time_s:.3f}, loss: 8.0\n"
        for step, time_s in enumerate(times_s)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    return path


def test_a_log_of_fewer_steps_than_the_recipe_is_undecided_until_their_number_is_stated(
    grade: Llmb, tmp_path: Path
) -> None:
    for steps, over in ((5, None), (16, "steady_state")):
        path = write(tmp_path / "cut.log", [40.0, *[7.0] * (steps - 1)])
        document = grade(path, "--json").json
        assert (document["status"], document["verdict"], document["measured_over"]) == ("incomplete", "undecided", over)
        begin = f"the log ends with step {steps - 1}, and the recipe has 50 steps"
        assert document["reason"] == f"{begin}; if the run had no more, add --steps {steps}"
        assert document["notes"] == []
        assert grade(path, "--steps", steps, "--json").json["verdict"] == "pass"
        assert grade(path, "--window", "2:4", "--json").json["verdict"] == "pass"


def test_a_short_log_without_a_baseline_names_the_window_that_it_has(llmb: Llmb, tmp_path: Path) -> None:
    log = tmp_path / "short.log"
    line = " [2026-01-20 10:00:00] iteration {0}/ 5 | elapsed time per iteration (ms): 5200.0 | lm loss: 9.0 |\n"
    log.write_text("".join(map(line.format, range(1, 6))))
    point = ("--recipe", "megatron_bridge/llama3.1-8b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "8")
    document = llmb("grade", log, *point, "--json").json
    assert (document["verdict"], document["reason"]) == (None, "no baseline is published for this run")
    assert document["notes"] == [
        "steps 35 to 44 are not in the log (it has 1 to 5); "
        "there is no steady state, because fewer than 8 steps have a time",
        "--window 2:5 measures the steps of this log",
    ]
    assert llmb("grade", log, *point, "--window", "2:5", "--json").json["window"]["step_time_s"] == 5.2


def test_one_directory_of_repeats_is_an_error_that_names_the_logs(grade: Llmb, tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / "reps" / f"r{number}.log", [40.0, *[7.0 + number / 100] * 49])
    folder = tmp_path / "reps"
    answer = grade(folder, "--repeats")
    logs = [f"{folder}/r{number}.log" for number in range(3)]
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == (
        f"llmb: {folder}: 3 logs in a directory are those of one run, but --repeats needs several runs; "
        f"expected `--repeats {' '.join(logs)}`, or no --repeats\n"
    )
    assert len(grade(*logs, "--repeats", "--json").json["repeats"]) == 3


def test_directories_are_repeats_with_the_logs_of_ranks(grade: Llmb, tmp_path: Path) -> None:
    for run, rank in itertools.product("ab", range(2)):
        write(tmp_path / run / f"rank{rank}.log", [40.0 + ord(run), *[7.0] * 49])
    document = grade(tmp_path / "a", tmp_path / "b", "--repeats", "--json").json
    assert [each["left_out"] for each in document["repeats"]] == [False, False]
    assert document["notes"] == [
        "slow ranks are unknown: the logs do not have 8 step times of 4 ranks in common; "
        "if each log is a run, name each log instead of its directory"
    ]


def test_the_reason_names_the_repeats_if_none_can_be_judged(grade: Llmb, tmp_path: Path) -> None:
    (empty := tmp_path / "empty.log").touch()
    (other := tmp_path / "other.log").write_text("hello\n")
    reason = grade(empty, other, empty, "--repeats", "--json").json["reason"]
    assert reason.startswith("repeat 1, repeat 3: the log is empty; repeat 2: no maxtext steps found")
    assert grade(empty, empty, "--repeats", "--json").json["reason"] == "the log is empty"


def test_notes_name_the_repeats_that_they_are_about(grade: Llmb, tmp_path: Path) -> None:
    one, two = (write(tmp_path / f"{name}.log", [40.0 + len(name), *[7.0] * 49]) for name in ("a", "bc"))
    (both := tmp_path / "both.log").write_text(two.read_text().replace("7.0000", "9.0000") + two.read_text())
    document = grade(one, both, "--repeats", "--json").json
    assert document["notes"] == ["repeat 2: both.log has 2 runs, and only the last one is graded"]


def test_a_log_with_the_batch_of_another_variant_names_that_variant(llmb: Llmb, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    line = " iteration {0}/ 50 | elapsed time per iteration (ms): 5200.0 | global batch size: 512 | lm loss: 9.0 |\n"
    log.write_text("".join(map(line.format, range(1, 51))))
    recipe = ("--recipe", "megatron_bridge/gpt-oss-120b@26.06.01", "--gpu-type", "h100", "--dtype", "bf16")
    document = llmb("grade", log, *recipe, "--gpus", "64", "--json").json
    assert (document["variant"], document["verdict"]) == ("v2", "undecided")
    assert document["reason"] == (
        "not comparable with the baseline: the log has a global batch size of 512, the recipe 1,280; "
        "--variant v1 has this batch"
    )
    assert "this batch" not in str(llmb("grade", log, *recipe, "--gpus", "64", "--variant", "v1", "--json").json)
