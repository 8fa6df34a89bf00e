"""NeMo's bars and lines: their values, and torn, joined and garbled ones."""

from __future__ import annotations

import math
from pathlib import Path

import attrs
import pytest
from parts.garbled import garbled, read

from llmb import Notice, Step, parse
from llmb_nemo_launcher.log import NeMoLog

BAR = "reduced_train_loss=11.20, global_step=1.000, consumed_samples=256.0, train_step_timing in s=24.80"
NEMO_2_TIME = "reduced_train_loss: 9.1 | train_step_timing in s: 5.7"
OLD = "reduced_train_loss=11.30, global_step=0.000, consumed_samples=128.0, train_step_timing in s=44.90"


def items(*blocks: str, buffer: int | None = None) -> list[Step | Notice]:
    parser = NeMoLog(buffer)
    return [item for block in blocks for item in parser.feed(block.encode())] + list(parser.close())


def steps(*blocks: str, buffer: int | None = None) -> list[Step]:
    return [item for item in items(*blocks, buffer=buffer) if isinstance(item, Step)]


def bar(place: str, figures: str = "", epoch: int = 0) -> str:
    rest = f", {figures}" if figures else ""
    return f"\rEpoch {epoch}: :  10%|█         | {place} [00:49<07:25{rest}]"


# NeMo 1


def test_a_bar() -> None:
    assert items(bar("2/20", BAR) + "\n") == [
        Notice(kind="total steps", text="20 steps", value=20),
        Step(step=2, time_s=24.8, loss=11.2, other_values={"global_step": 1.0, "consumed_samples": 256.0}),
    ]


@pytest.mark.parametrize(
    ("line", "step", "time_s", "loss"),
    [
        ("Epoch 0:   6%|▌  | 6/100 [00:04<01:0,  1.3it/s, loss=6.1, v_num=, train_step_timing in s=0.7]", 6, 0.7, 6.1),
        ("Epoch 0: : 9it [00:02,  3.58it/s, v_num=9-11, train_step_timing in s=0.151][NeMo I x]", 9, 0.151, None),
        ("Epoch 0: : 3/? [00:02<?, v_num=, reduced_train_loss=2.1, train_step_timing in s=0.5]", 3, 0.5, 2.1),
        ("Epoch 0: :   0%|   | 2000/603000 [1:03:17<317:00:58, v_num=, reduced_train_loss=2.600, global_step=2e+3, "
         "consumed_samples=1.28e+6, train_step_timing in s=1.900, val_loss=2.800]dation DataLoader 0: : 51it [00:20]",
         2000, 1.9, 2.6),
        ("Epoch 0: :  47%|█ | 7/15 [06:19<07:13, reduced_train_loss=11.50, global_step=5.000]", 7, None, 11.5),
        ("Epoch 0: : 100%| 50/50 [31:51<00:0, reduced_train_loss=nan, train_step_timing in s=5.9]", 50, 5.9, math.nan),
        ("0: Epoch 0: :  10%|█ | 2/20 [00:49<07:2, reduced_train_loss=11.2, train_step_timing in s=2.8]", 2, 2.8, 11.2),
    ],
    ids=["2023", "total unknown", "question mark", "rounded and overwritten", "no timing", "nan", "label"],
)  # fmt: skip
def test_bars_of_every_version(line: str, step: int, time_s: float | None, loss: float | None) -> None:
    [found] = steps(line + "\n")

    assert (found.step, found.time_s) == (step, time_s)
    assert found.loss == pytest.approx(loss, nan_ok=True) if loss is not None else found.loss is None


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 0: :   5%|▌         | 1/20 [00:44<14:12]",
        "Validation DataLoader 0: : 51it [00:20,  2.53it/s, reduced_train_loss=1.0]",
        "Epoch 0, global step 20: 'val_loss' was not in top 10, train_step_timing in s=1.0",
        "[NeMo I 2025-06-11 01:57:25 nemo_logging:393] train_step_timing in s: [44.85, 24.77, 18.06]",
        "Epoch 0: :   5%|▌         | 1/20 [00:44<14:12, v_num=12, reduced_train_loss=",
        "train_step_timing in s=1.0",
    ],
)
def test_what_is_no_step(line: str) -> None:
    assert steps(line + "\n") == []


def test_a_redraw_with_the_values_of_the_step_before_is_no_step() -> None:
    found = steps(bar("1/20", OLD), bar("2/20"), bar("2/20", OLD), bar("2/20", BAR), bar("2/20", BAR), "\n")

    assert [(step.step, step.time_s) for step in found] == [(1, 44.9), (2, 24.8)]


def epochs(lengths: list[int], shown: str, *, every: int = 1, rounded: bool = False) -> str:
    """Return the bars of several epochs: each step twice, as NeMo draws them, and an empty bar at the begin of each."""
    drawn, done, fields = [], 0, ""
    for epoch, length in enumerate(lengths):
        drawn.append(bar(f"0/{shown}", fields, epoch))
        for count in range(1, length + 1):
            global_step = "3.1e+4" if rounded else f"{done}.000"
            done += 1
            if count % every == 0:
                drawn.append(bar(f"{count}/{shown}", fields, epoch))
                fields = f"reduced_train_loss=1.{done:03}, global_step={global_step}, train_step_timing in s={done}.0"
                drawn.append(bar(f"{count}/{shown}", fields, epoch))
        fields += f", val_loss={epoch}.500"
        if length % every == 0:
            drawn.append(bar(f"{length}/{shown}", fields, epoch))
    return "".join(drawn) + "\n"


@pytest.mark.parametrize(
    ("log", "numbers"),
    [
        (epochs([20, 20, 20], "20"), range(1, 61)),
        (epochs([20, 20, 20], "100"), range(1, 61)),  # Megatron shows the steps of all epochs
        (epochs([20, 20], "?"), range(1, 41)),
        (epochs([20, 20, 20], "20", rounded=True), range(1, 61)),
        (epochs([20, 20, 20], "20").partition("Epoch 1")[2].join(["\rEpoch 1", ""]), range(21, 61)),
    ],
    ids=["total of an epoch", "total of all", "no total", "rounded", "the first epoch is lost"],
)
def test_steps_are_counted_over_all_epochs(log: str, numbers: range) -> None:
    found = steps(log)

    assert list(dict.fromkeys(step.step for step in found)) == list(numbers)  # the last one is drawn again
    assert {step.attempt for step in found} == {0}
    assert [step.time_s for step in found] == [float(step.step) for step in found]


def test_steps_that_are_not_drawn_at_the_end_of_an_epoch_are_counted() -> None:
    found = steps(epochs([25, 25], "100", every=10))

    assert [step.step for step in found] == [10, 20, 35, 45]


def test_rounded_values_may_be_the_same_for_a_new_step() -> None:
    rounded = "reduced_train_loss=2.10, global_step=3.1e+4, consumed_samples=4e+6, train_step_timing in s=4.700"
    found = steps(*(bar(f"{step}/40000", rounded) for step in (31000, 31001, 31001, 31002, 31002)), "\n")

    assert [step.step for step in found] == [31000, 31001, 31002]


def test_a_framework_that_logs_each_tenth_step_has_each_tenth_step() -> None:
    tenth = "reduced_train_loss=2.1, global_step=9.000, train_step_timing in s=4.700"
    found = steps(*(bar(f"{step}/50", tenth) * 2 for step in range(10, 20)), bar("20/50", BAR), "\n")

    assert [step.step for step in found] == [10, 20]


def test_full_numbers_of_dllogger_count_more_than_the_bar() -> None:
    exact = "DLL 2025-06-11 01:56:01.007935 - 1 reduced_train_loss : 11.159525  grad_norm : 44.6  epoch : 0 \n"
    first, second = steps(bar("2/20", BAR) + exact, bar("3/20", OLD) + exact)

    assert (first.loss, first.time_s, first.other_values["grad_norm"]) == (11.159525, 24.8, 44.6)
    assert (second.step, second.loss) == (3, 11.3)  # it is of another step


def test_a_record_inside_a_bar_cuts_its_values() -> None:
    saved = "Epoch 0, global step 1: saved as epoch=0-val_loss=8.56.ckpt"
    glued = bar("2/20", BAR).replace("11.20, ", f"11.{saved}20, ")
    found = steps(bar("1/20", OLD), glued, bar("3/20", BAR), "\n")

    assert [(step.step, step.time_s) for step in found] == [(1, 44.9), (3, 24.8)]


def test_joined_bars_are_all_read() -> None:
    found = steps(f"{bar('1/20', OLD)}{bar('2/20', BAR)}\n".replace("\r", ""))

    assert [(step.step, step.time_s) for step in found] == [(1, 44.9), (2, 24.8)]


@pytest.mark.parametrize(
    ("head", "buffer", "means"),
    [
        ("", None, [1] * 7),
        ("", 5, [1, 2, 3, 4, 5, 5, 5]),
        ("|     sync_cuda: true\n|     buffer_size: 5\n", None, [1, 2, 3, 4, 5, 5, 5]),
        ("0:         buffer_size: 3\n", None, [1, 2, 3, 3, 3, 3, 3]),
        ("  shuffle_buffer_size: 5\n{'buffer_size': 5}\n", None, [1] * 7),
        ("|     buffer_size: 5\n", 1, [1] * 7),
    ],
    ids=["raw", "recipe", "log", "label", "another buffer", "the recipe is believed"],
)
def test_a_step_has_the_number_of_steps_in_its_mean(head: str, buffer: int | None, means: list[int]) -> None:
    bars = [bar(f"{step}/7", f"reduced_train_loss=1.{step}, train_step_timing in s=4.7") for step in range(1, 8)]

    assert [step.mean_of for step in steps(head, *bars, "\n", buffer=buffer)] == means


# NeMo 2

LINE = (
    "Training epoch 1, iteration 10/999 | lr: 4.498e-06 | global_batch_size: 512 | global_step: 29 | "
    "max_memory_reserved: 127785762816 | reduced_train_loss: 11.03 | train_step_timing in s: 46.84 | "
    "TFLOPS_per_GPU: 1.249e+03 | tokens_per_sec_per_gpu: 1.073e+04 | consumed_samples: 15360"
)


@pytest.mark.parametrize(
    "prefix",
    ["", "(pretraining, pid=4112) ", "ining-demo/0 [default0]:", "[2025-11-20T14:55:23+08:00] retraining/0 ", "12: "],
)
def test_a_line_of_nemo_2(prefix: str) -> None:
    total, step = items(f"{prefix}{LINE}\n")

    assert total == Notice(kind="total steps", text="1000 steps", value=1000)
    assert step == Step(
        step=29,
        time_s=46.84,
        loss=11.03,
        tflops_per_gpu=1249.0,
        tokens_per_s_per_gpu=10730.0,
        other_values={
            "lr": 4.498e-06,
            "global_batch_size": 512.0,
            "max_memory_reserved": 127785762816.0,
            "consumed_samples": 15360.0,
        },
        mean_of=None,
    )


def test_values_of_nemo_2_are_means_since_the_line_before(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("".join(f"{NEMO_2.format(n)}{NEMO_2_TIME}\n" for n in (4, 9, 14, 19)))

    assert [step.mean_of for step in parse(log, framework="nemo_launcher").steps][1:] == [5, 5, 5]


def test_a_line_without_a_timing_is_a_step_without_a_time() -> None:
    [step] = steps("Training epoch 0, iteration 2/999 | lr: 0 | global_step: 2 | reduced_train_loss: 2.464\n")

    assert (step.step, step.time_s, step.loss, step.other_values) == (2, None, 2.464, {"lr": 0.0})


def test_text_directly_after_the_last_value_is_skipped() -> None:
    [step] = steps("Training epoch 0, iteration 2/9 | global_step: 2 | consumed_samples: 384[NeMo W 2025] Dropping\n")

    assert step.other_values["consumed_samples"] == 384.0


@pytest.mark.parametrize("number", ["1.", "12.", "1,234"])
def test_a_number_that_is_cut_or_has_a_comma_is_skipped(number: str) -> None:
    [step] = steps(f"{NEMO_2.format(2)}train_step_timing in s: {number}[NeMo W 2025] Dropping\n")

    assert (step.step, step.time_s) == (2, None)


def test_validation_is_no_training_step() -> None:
    assert steps("Validation: iteration 3/8\nTraining epoch 0, iteration 3/8\n") == []


# The end of a log that is cut


@pytest.mark.parametrize("whole", [LINE.replace("46.84", "46.80"), bar("2/20", BAR)[1:]], ids=["NeMo 2", "NeMo 1"])
def test_a_value_that_may_lack_digits_is_skipped(whole: str) -> None:
    [expected] = steps(whole + "\n")

    for length in range(len(whole)):
        for step in steps(whole[:length]):
            for name, value in attrs.asdict(step, filter=lambda _field, value: isinstance(value, float)).items():
                assert value == getattr(expected, name), (whole[:length], name)
            assert step.other_values.items() <= expected.other_values.items() | {("global_step", 29.0)}


def test_a_last_line_without_an_end_keeps_a_complete_time() -> None:
    [step] = steps("Training epoch 0, iteration 0/19 | global_step: 0 | train_step_timing in s: 10.31")

    assert step.time_s == 10.31


def test_a_last_line_that_is_cut_before_its_time_is_no_step() -> None:
    first, second = (f"Training epoch 0, iteration {n}/19 | global_step: {n} | " for n in (1, 2))
    time = "train_step_timing in s: 10.31"

    assert [step.step for step in steps(f"{first}{time}\n{second}lr: 0")] == [1]
    assert [step.step for step in steps(f"{first}lr: 0\n{second}lr: 0\n{second[:-30]}")] == [1, 2]  # none has a time


@pytest.mark.parametrize(
    ("lines", "total"),
    [
        ([(0, 19, 0), (19, 19, 19)], 20),
        ([(19, 19, 19), (0, 19, 20), (4, 19, 24)], 40),
        ([(9, 19, 29), (0, 19, 40)], 60),
        ([(19, 59, 19), (0, 59, 20)], 60),  # of all epochs, from max_steps
        ([(0, 14, 5), (14, 14, 19)], 15),  # resumed after 5 of 20 steps
    ],
    ids=["one epoch", "second epoch", "third epoch", "total of all", "resumed"],
)
def test_the_total_of_nemo_2_counts_the_epochs_before(lines: list[tuple[int, int, int]], total: int) -> None:
    found = items(
        *(f"Training epoch 0, iteration {n}/{last} | global_step: {step} | {NEMO_2_TIME}\n" for n, last, step in lines)
    )

    assert [item.value for item in found if isinstance(item, Notice)][-1] == total


def test_a_crash_in_the_second_epoch_of_nemo_2_is_no_complete_run(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    lines = [f"Training epoch {n // 20}, iteration {n % 20}/19 | global_step: {n} | {NEMO_2_TIME}\n" for n in range(25)]
    log.write_text("".join([*lines, "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n"]))

    parsed = parse(log, framework="nemo_launcher")

    assert (parsed.status, parsed.series.total_steps) == ("incomplete", 40)
    assert parsed.failure is not None
    assert "out of memory" in parsed.failure.cause


NEMO_2 = "Training epoch 0, iteration {0}/19 | lr: 1e-05 | global_step: {0} | reduced_train_loss: 1.5 | "


@pytest.mark.parametrize("step", ["9" * 23, "nan", "inf", "1e999", "-3"])
def test_an_impossible_step_number_gives_no_step(step: str) -> None:
    whole, wrong = (f"{NEMO_2.format(n)}train_step_timing in s: 10.31" for n in (1, step))

    assert [found.step for found in steps(f"{whole}\n{wrong.replace(step, '2', 1)}\n")] == [1]


@pytest.mark.parametrize(
    "log",
    [
        "".join(f"{NEMO_2.format(n)}train_step_timing in s: 10.31\n" for n in range(6)),
        "".join(f"{bar(f'{n}/9', BAR)}{bar(f'{n + 1}/9', BAR)}" for n in range(1, 6)) + "\n",
    ],
    ids=["2", "1"],
)
def test_a_garbled_log_does_not_stop_the_parser(log: str) -> None:
    assert all(read(NeMoLog, each) for each in garbled(log.encode()))


@pytest.mark.parametrize("end", [" | \n", " |\n   ", "\n| ", " \n  | "])
@pytest.mark.parametrize("fields", [1, 2, 3])
def test_lines_of_nemo_2_that_a_copy_wrapped(end: str, fields: int) -> None:
    log = ""
    for number in (28, 29):
        line = ["Training epoch 1, iteration 9/99", "lr: 1e-06", f"global_step: {number}", "reduced_train_loss: 11.03",
                "train_step_timing in s: 46.8", "consumed_samples: 512"]  # fmt: skip
        log += end.join(" | ".join(line[at : at + fields + 1]) for at in range(0, len(line), fields + 1)) + "\n"
    log += "saving: done\n" * 3

    found = {step.step: step for step in steps(log)}
    assert [(step.step, step.time_s, step.loss) for step in found.values()] == [(28, 46.8, 11.03), (29, 46.8, 11.03)]
    assert found[29].other_values["consumed_samples"] == 512


STOPPED = "`Trainer.fit` stopped: `max_steps=%d` reached.\n"


@pytest.mark.parametrize(
    "log",
    [
        "".join(f"{NEMO_2.format(n)}train_step_timing in s: 10.31\n" for n in range(2)) + STOPPED % 2,
        bar("1/20", BAR) + bar("2/20", BAR.replace("24.80", "9.80")) + STOPPED % 2,
    ],
    ids=["2", "1"],
)
def test_a_run_that_lightning_stopped_at_its_last_step_has_all_steps(log: str) -> None:
    found = items(log)
    totals = [item.value for item in found if isinstance(item, Notice) and item.kind == "total steps"]

    assert totals == [20, 2]
    assert found[-1] == Notice(kind="finished")
    assert items(log + log)[-1] == Notice(kind="finished")


# MLPerf

RECORD = ':::MLLOG {{"time_ms": 1, "key": "{key}", "value": {value}, "metadata": {{"lineno": 1, {metadata}}}}}\n'


def test_the_records_of_mlperf_have_the_step_times() -> None:
    log = RECORD.format(key="global_batch_size", value=8, metadata='"file": "x"')
    for samples, rate in ((384, 16.0), (768, 32.0)):
        log += "0: " + RECORD.format(
            key="tracked_stats", value=f'{{"throughput": {rate}}}', metadata=f'"step": {samples}'
        )
        log += RECORD.format(key="eval_accuracy", value=0.9, metadata=f'"samples_count": {samples}')
    log += ":::MLLOG {torn\n" + RECORD.format(key="run_stop", value="null", metadata='"status": "success"')

    assert items(log) == [
        Step(step=48, time_s=0.5, other_values={"throughput": 16.0}, mean_of=48),
        Step(step=96, time_s=0.25, other_values={"throughput": 32.0}, mean_of=48),
        Notice(kind="finished"),
    ]


def test_the_time_of_each_checkpoint_of_nemo_2_is_known() -> None:
    line = "Training epoch 0, iteration {0}/19 | global_step: {0} | train_step_timing in s: 2.31 | loss: 2.5\n"
    saved = "[NeMo I] Global Checkpoint Save : Rank: {0} : Iteration: 1 : Start time: 1750.9s : Save duration: 0.446s\n"
    found = items(line.format(0), line.format(1), saved.format(0), saved.format(1), line.format(2))
    assert [each.time_s for each in found if isinstance(each, Notice) and each.kind == "checkpoint"] == [0.446]


# DLLogger's file


DLLL = 'DLLL {{"timestamp": "1.5", "elapsedtime": "2.0", "type": "LOG", "step": {step}, "data": {data}}}\n'
DATA = '{"reduced_train_loss": 10.914, "global_step": 1.0, "train_step_timing in s": 92.287, "comment": "text"}'


def test_the_file_of_dllogger() -> None:
    log = DLLL.format(step='"PARAMETER"', data='{"train_step_timing in s": 1.0}') + DLLL.format(step=0, data="{torn")
    log += DLLL.format(step=1, data=DATA) + DLLL.format(step=[0, 2], data=DATA) + DLLL.format(step="[]", data=DATA)

    first = Step(step=2, time_s=92.287, loss=10.914, other_values={"global_step": 1.0})
    assert steps(log) == [first, attrs.evolve(first, step=3)]


def test_times_in_the_file_of_dllogger_are_averages_over_the_buffer() -> None:
    found = steps(*(DLLL.format(step=step, data=DATA) for step in range(4)), buffer=3)

    assert [step.mean_of for step in found] == [1, 2, 3, 3]


@pytest.mark.parametrize(
    "record",
    [
        "DLLL {",
        "DLLL {}",
        'DLLL {"step": 1e999, "data": 1}',
        'DLLL {"step": 1, "data": {"reduced_train_loss": 1' + "0" * 400 + "}}",
        pytest.param("DLLL {" + '"a":[' * 50_000, id="50,000 lists"),
    ],
)
def test_damaged_records_of_dllogger(record: str) -> None:
    assert steps(record + "\n") == []
