"""The `line` that ``llmb new-plugin --from`` proposes: it reads every step of the log, with the right units."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import pytest
from parts.command_line import command_line

TRAINERS = {
    "plain": (
        "step {i}/20 - loss=3.{i} - {t} ms/step - 12{i}3 tok/s\n",
        "step {step}/{total_steps} - loss={loss} - {time_ms} ms/step - {tokens_per_s} tok/s",
    ),
    "torchtitan": (
        "[rank0]:\x1b[0m[titan] 2026-11-22 10:00:0{i},123 - root - INFO - step:  {i}  loss:  8.{i}7  grad_norm: "
        "1.{i}3  memory: 40.1GiB(42.2%)  tps: 7,{i}12  tflops: 41{i}.50  mfu: 41.{i}5%\n",
        "step: {step} loss: {loss} grad_norm: {grad_norm} ... tps: {tokens_per_s_per_gpu} tflops: {tflops_per_gpu} "
        "mfu: {mfu}%",
    ),
    "Megatron": (
        " [2026-11-22 10:00:0{i}] iteration        {i}/     100 | consumed samples:         {i}00 | elapsed time per "
        "iteration (ms): 18{i}.4 | learning rate: 1.{i}E-05 | global batch size:   100 | lm loss: 7.{i}E+00 | "
        "grad norm: 2.{i} | number of nan iterations:   0 |\n",
        "iteration {step}/ {total_steps} ... elapsed time per iteration (ms): {time_ms} | "
        "learning rate: {learning_rate} ... lm loss: {loss} | grad norm: {grad_norm}",
    ),
    "NeMo": (
        "\rEpoch 0: : {i}5%|\u2588\u258c   | {i}/20 [00:4{i}<07:2{i}, reduced_train_loss=9.{i}0, global_step={i}.000, "
        "consumed_samples={i}28.0, train_step_timing in s=4.{i}]",
        "reduced_train_loss={loss}, global_step={step} ... train_step_timing in s={time_s}",
    ),
    "JSON": (
        '{{"epoch": 1, "step": {i}, "loss": 2.{i}5, "step_time": 0.{i}2}}\n',
        '"step": {step}, "loss": {loss}, "step_time": {time_s}',
    ),
}
"""Lines of training logs, with ``{i}`` for the step, and the `line` that reads them."""


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_declared_framework_reads_the_log_that_it_is_written_from(
    tmp_path: Path, trainer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, line = TRAINERS[trainer]
    log = tmp_path / "a.log"
    noise = "loading shard {i} of 9\nsaved the checkpoint of step 3 in 1.5 s\n"
    steps = "".join(text.format(i=i, t=f"81{i}.5") for i in range(1, 9))
    log.write_text("".join(noise.format(i=i) for i in range(1, 3)) + steps + "\nstep 8 ended\n")
    run = command_line(capsys)
    assert run("new-plugin", "mine", "--from", log, "--into", tmp_path).status == 0
    assert tomllib.loads((tmp_path / "mine.toml").read_text())["log"]["line"] == line
    rows = run("parse", log, "--framework", tmp_path / "mine.toml", "--csv").out.splitlines()[1:]
    assert [int(row.split(",")[0]) for row in rows] == list(range(1, 9))
    assert all(row.split(",")[2] for row in rows)  # losses


def rows_of_proposal(log: Path, text: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    """Return the steps that `parse --csv` reads from a log with the file that `new-plugin --from` writes."""
    log.write_text(text)
    file, run = log.parent / "mine.toml", command_line(capsys)
    assert run("new-plugin", "mine", "--from", log, "--into", log.parent).status == 0
    return [*csv.DictReader(run("parse", log, "--framework", file, "--csv").out.splitlines())]


def bar(step: int, rate: str, *, of: str = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589\u2588") -> str:
    """Return a line of tqdm at a step of 300, drawn with the characters ``of``, the last one for a full column."""
    full, part = divmod(step * 10 * (len(of) - 1) // 300, len(of) - 1)
    drawn = (of[-1] * full + of[part]).ljust(10)[:10]
    return f"{step // 3:3}%|{drawn}| {step}/300 [{step // 60:02}:{step % 60:02}<04:59, {rate:>6}"


@pytest.mark.parametrize(
    "of", [" \u258f\u258e\u258d\u258c\u258b\u258a\u2589\u2588", " 123456789#"], ids=["Unicode", "ASCII"]
)
@pytest.mark.parametrize("end", ["\r", "\n"])
def test_every_step_of_a_progress_bar_is_read(
    tmp_path: Path, of: str, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"train: {bar(step, f'1.{step % 9}5s/it', of=of)}, loss=2.5]{end}" for step in range(1, 301))
    rows = rows_of_proposal(tmp_path / "a.log", text, capsys)
    assert [int(row["step"]) for row in rows] == list(range(1, 301))
    assert {(row["time_s"], row["loss"]) for row in rows} == {(f"1.{last}5", "2.5") for last in range(9)}


def test_a_progress_bar_may_print_seconds_per_step_and_steps_per_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = ["1.25s/it"] * 200 + ["1.60it/s"] * 100
    text = "".join(f"\r{bar(step, rate)}]" for step, rate in enumerate(rates, 1))
    rows = rows_of_proposal(tmp_path / "a.log", text, capsys)
    assert [row["time_s"] for row in rows] == ["1.25"] * 200 + ["0.625"] * 100
    other = tmp_path / "b.log"
    other.write_text("".join(f"\r{bar(step, '4.00it/s')}]" for step in range(1, 301)))
    out = command_line(capsys)("parse", other, "--framework", tmp_path / "mine.toml").out
    assert "300 steps, last step: 0.25 s" in out


def test_bars_without_a_loss_are_read_if_some_have_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loss = "{'loss': 2.5, 'grad_norm': 1.5}\n"
    text = "".join(f"\r{bar(step, '1.25s/it')}]{'' if step % 10 else loss}" for step in range(1, 301))
    rows = rows_of_proposal(tmp_path / "a.log", text, capsys)
    assert len(rows) == 300
    assert [row["step"] for row in rows if row["loss"]] == [str(step) for step in range(10, 301, 10)]


@pytest.mark.parametrize(
    ("text", "time_s"),
    [
        ("iter time: 351.{i} ms (step) eta 3 s", 0.351),
        ("time 351.{i}ms", 0.351),
        ("in 0.50{i} seconds, loss 2.{i}", 0.5),
        ("of 9 in 351.{i} ms", 0.351),
        ("in 12.{i} s, dt: 0.50{i} s", 0.5),
        ("eval in 12.{i} s, dt: 0.50{i} s", 0.5),
        ("saved in 3.{i}s time 0.50{i} s", 0.5),
        ("built in 3.{i} s took 0.50{i} s", 0.5),
        ("val in 3.{i} s, 0.500{i} s/it", 0.5),
        ("objective 3.{i} | 0.50{i} sec/update | peak 12 GiB", 0.5),
        ("objective 3.{i} | 0.50{i} seconds per step", 0.5),
        ("objective 3.{i} | 351.{i} ms/batch", 0.351),
        ("time=812{i}00 us", 0.812),
        ("step_time: 0.50{i} sec", 0.5),
        ("time 1.50{i} min", 90),
        ("time 12.5{i} min 10.1 max 14.1", 12.5),
        ("time_min: 0.4{i} time_max: 0.6{i} time_avg: 0.50{i}", 0.5),
        ("time (min): 1.50{i} max_norm 1", 90),
        ("loss 3.{i} ms/iter 351.{i}", 0.351),
        ("elapsed_time_per_iteration_ms: 1.21{i}K", 1.21),
        ("time 351.{i} ms tok/s 92{i} mem 1{i}", 0.351),
    ],
)
def test_the_unit_beside_a_time_counts(
    tmp_path: Path, text: str, time_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    log = "".join(f"step {i} {text.format(i=i)}\n" for i in range(1, 9))
    rows = rows_of_proposal(tmp_path / "a.log", log, capsys)
    assert [float(row["time_s"]) for row in rows] == [pytest.approx(time_s, rel=0.02)] * 8


@pytest.mark.parametrize(
    "after", [" mem=1{i}.3GB", "  grad norm 1{i}.3", " | mem 1{i}.3GB", " lr 1.{i}e-5", "", ", mfu=0.{i}"]
)
@pytest.mark.parametrize("name", [" throughput=", " ", " | "])
def test_a_rate_is_the_unit_of_the_number_before_it(
    tmp_path: Path, name: str, after: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"step {{i}} loss 2.{{i}} time 500 ms{name}92{{i}} tok/s{after}\n"
    log = tmp_path / "a.log"
    rows_of_proposal(log, "".join(text.format(i=i) for i in range(1, 9)), capsys)
    run = command_line(capsys)
    rows = csv.DictReader(run("parse", log, "--recipe", tmp_path / "mine.toml", "--gpus", 1, "--csv").out.splitlines())
    assert [float(row["tokens_per_s_per_gpu"]) for row in rows] == [float(f"92{i}") for i in range(1, 9)]


def test_the_time_of_a_checkpoint_is_no_step_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = "".join(f"step {i} loss 2.{i} checkpoint saved in 3.{i} s\n" for i in range(1, 9))
    assert {row["time_s"] for row in rows_of_proposal(tmp_path / "a.log", log, capsys)} == {""}


@pytest.mark.parametrize("text", ["{i}m 20s", "{i} h 20 m", "0:0{i}:20", "1{i} min 20 s", "1{i}min 20s", "1:0{i}.5"])
def test_a_time_in_several_numbers_is_no_step_time(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = "".join(f"step {i} loss 3.{i} time {text.format(i=i)}\n" for i in range(1, 9))
    assert {row["time_s"] for row in rows_of_proposal(tmp_path / "a.log", log, capsys)} == {""}


def test_numbers_are_read_with_and_without_a_suffix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = ["812", "1.21K", "990", "15.1K", "1.5M"]
    log = "".join(f"step: {i} | Tokens/s/GPU: {number}\n" for i, number in enumerate(numbers))
    rows = rows_of_proposal(tmp_path / "a.log", log, capsys)
    assert [float(row["tokens_per_s_per_gpu"]) for row in rows] == [812, 1210, 990, 15100, 1.5e6]


def test_only_the_lines_of_one_counter_are_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "[Rank 0] step={i}0, skipped=0\nepoch=0/micro_step={i}40/global_step={i}0, MemAllocated=12.0GB\n"
    rows = rows_of_proposal(tmp_path / "a.log", "".join(lines.format(i=i) for i in range(1, 9)), capsys)
    assert [int(row["step"]) for row in rows] == list(range(10, 81, 10))


@pytest.mark.parametrize("word", ["step", "STEP", "global_step"])
def test_a_step_may_follow_its_word_without_a_blank(
    tmp_path: Path, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = "".join(f"{word}{i}: loss 3.{i} time 1.2{i}s\n" for i in range(1, 9))
    rows = rows_of_proposal(tmp_path / "a.log", log, capsys)
    assert [(row["step"], row["loss"], row["time_s"]) for row in rows] == [
        (str(i), f"3.{i}", f"1.2{i}") for i in range(1, 9)
    ]


@pytest.mark.parametrize(
    "begin", ["gpu-a12: ", "10:00:00 gpu-a12: ", "2026-11-02T10:00:00.5Z gpu-a12: ", "\ufeffgpu-a12: "]
)
def test_the_label_of_a_rank_is_no_part_of_a_proposed_line(
    tmp_path: Path, begin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = "".join(f"{begin}step {i} loss 3.{i} time 1.2{i} s\n" for i in range(1, 9))
    assert len(rows_of_proposal(tmp_path / "a.log", log, capsys)) == 8
    assert "gpu-a12" not in (tmp_path / "mine.toml").read_text()


def test_steps_without_a_number_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "a.log"
    log.write_text(
        "epoch 1 starts\n" + "".join(f"nll 3.{i} | 0.{i}5s/it | lr 1e-4\n" for i in (9, 7, 8)) + "took 9.5 s\n"
    )
    run = command_line(capsys)
    assert run("new-plugin", "mine", "--from", log, "--into", tmp_path).status == 0
    rows = run("parse", log, "--framework", tmp_path / "mine.toml", "--csv").out.splitlines()[1:]
    assert [row.split(",")[:3] for row in rows] == [["1", "0.95", "3.9"], ["2", "0.75", "3.7"], ["3", "0.85", "3.8"]]
