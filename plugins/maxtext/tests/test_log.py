"""MaxText's logs of every version: values of real logs, and torn, joined and garbled lines."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts.garbled import cut, garbled, read

import llmb
from llmb import Notice, Step
from llmb_maxtext.log import MaxTextLog

HERE = Path(__file__).parent
GOLDEN = HERE / "logs" / "maxtext-0.2.5-cpu.log"
SHARED = HERE.parents[3] / "shared" / "logs"
REAL = sorted(SHARED.glob("maxtext/*.log"))
ALL = [GOLDEN, *REAL]
VARIED = [GOLDEN, *(log for log in REAL if log.name[:2] in ("01", "07", "21"))]
VARIED_THEN_ALL = [pytest.param(log, marks=() if log in VARIED else pytest.mark.slow, id=log.stem) for log in ALL]

SOME = """\
# completed step: 0, seconds: 36.350, TFLOP/s/device: 28.423, loss: 1.966
I0317 10:00:13.226566 1253 metric_logger.py:255] To see full metrics 'tensorboard --logdir=/home/x/'
completed step: 1, seconds: 0.319, TFLOP/s: 2400.734, loss: 12.038
[Rampup Batch Size Phase], completed step: 2, seconds: 5.658, total_weights: 4096, loss: 11.689
completed profiler activation/deactivation step: 3, total_weights: 196608, loss: 11.689
eval metrics after step: 3, loss=11.2, total_weights=4096
completed step: 4, seconds: 0.159, live slice count: 2, TFLOP/s/device: 43.430, Tokens/s/device: 8.5, loss: 220.774
completed step: 101, ...
I0317 10:00:33.804179 1253 metric_logger.py:181] completed step: 5, seconds: 0.427, TFLOP/s/device: 240.782, \
Tokens/s/device: 9596.596, total_weights: 28764, loss: nan, lm_loss: 5.1, perplexity: 164.022
"""


def parse(*blocks: bytes) -> list[Step | Notice]:
    parser = MaxTextLog()
    return [item for block in blocks for item in parser.feed(block)] + list(parser.close())


def steps(*blocks: bytes) -> list[Step]:
    return [item for item in parse(*blocks) if isinstance(item, Step)]


def last_run(*blocks: bytes) -> dict[int, str]:
    """Return the steps of the last run as text, because NaN does not equal itself, without their attempt."""
    found = steps(*blocks)
    last = max(step.attempt for step in found)
    kept = {step.step: repr(attrs.evolve(step, attempt=0)) for step in found if step.attempt == last}
    return dict(sorted(kept.items()))


def one(line: str) -> Step | None:
    found = steps(line.encode() + b"\n")
    assert len(found) < 2
    return found[0] if found else None


def interleaved(data: bytes, ranks: int, label: str = "", late: int = 0) -> bytes:
    """Return the log of several ranks in one file, each ``late`` lines behind the rank before."""
    lines = data.splitlines()
    labels = [label.replace("N", str(rank)).encode() for rank in range(ranks)]
    turns = range(len(lines) + late * ranks)
    places = [(rank, turn - late * rank) for turn in turns for rank in range(ranks)]
    return b"".join(labels[rank] + lines[place] + b"\n" for rank, place in places if 0 <= place < len(lines))


@functools.cache
def parsed_in_one_piece(log: Path) -> str:
    """Return what the parser finds in a log, as text."""
    return repr(parse(log.read_bytes()))


# What a line means


def test_a_line_of_the_present_version() -> None:
    line = (
        "I0706 16:50:26.230209 140110937163584 metric_logger.py:214] completed step: 1, seconds: 24.930, "
        "TFLOP/s/device: 0.861, Tokens/s/device: 164.297, total_weights: 6965, loss: 0.693, lm_loss: 0.000, "
        "perplexity: 1.000, moe_lb_loss: 0.000125, reward_accuracy: 0.375, indexer_loss: 1e-05"
    )

    assert one(line) == Step(
        step=1,
        time_s=24.93,
        loss=0.693,
        tflops_per_gpu=0.861,
        tokens_per_s_per_gpu=164.297,
        other_values={
            "total_weights": 6965.0,
            "lm_loss": 0.0,
            "perplexity": 1.0,
            "moe_lb_loss": 0.000125,
            "reward_accuracy": 0.375,
            "indexer_loss": 1e-05,
        },
    )


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (
            "completed step: 3, seconds: 3.585, TFLOP/s: 288.187, loss: 1.977",
            Step(step=3, time_s=3.585, tflops_per_gpu=288.187, loss=1.977),
        ),
        (
            "[Rampup Batch Size Phase], completed step: 7, seconds: 1.250, total_weights: 8192, loss: 9.100",
            Step(step=7, time_s=1.25, loss=9.1, other_values={"total_weights": 8192.0}),
        ),
        (
            "completed step: 8, seconds: 0.159, live slice count: 3, TFLOP/s/device: 43.430, loss: 220.774",
            Step(step=8, time_s=0.159, tflops_per_gpu=43.43, loss=220.774, other_values={"live slice count": 3.0}),
        ),
        ("completed step: 4, seconds: 1.182", Step(step=4, time_s=1.182)),
        ("completed step: 4, loss: -inf", Step(step=4, loss=-math.inf)),
    ],
    ids=["2023", "ramp-up", "elastic", "time alone", "loss alone"],
)
def test_fields_come_and_go_with_the_version(line: str, step: Step) -> None:
    assert one(line) == step


@pytest.mark.parametrize(
    "line",
    [
        "completed step: 101, ...",
        "completed step: 101",
        "completed step: , seconds: 1.5",
        "completed step: 12345678901234567890123, seconds: 1.5",
        "completed profiler activation/deactivation step: 5, total_weights: 4096, loss: 1.5",
        "eval metrics after step: 5, loss=1.5, total_weights=4096",
        "Completed eval step: 5, seconds: 1.500, running loss=1.5",
        "Completed eval after train step 500, loss=0.516, perplexity=1.830",
        "saved a checkpoint at step 5",
        "completed step: 5, seconds: 5.741,5",
        "completed step: 5, seconds: 5.74158,2",
        "completed step: 5, seconds: 5.741.582",
    ],
)
def test_what_is_no_step(line: str) -> None:
    assert one(line) is None


@pytest.mark.parametrize("glue", ["", " ", "I0317 10:00:13.2 12 x.py:1] ", "node-1:77:88 [0] NCCL INFO Channel 00 "])
def test_lines_that_ranks_joined_are_two(glue: str) -> None:
    first, second = "completed step: 1, seconds: 1.500, loss: 3.250", "completed step: 1, seconds: 1.600, loss: 3.250"

    found = steps(f"{first}{glue}{second}\n\n".encode())
    assert [(step.time_s, step.loss) for step in found] == [(1.5, 3.25), (1.6, 3.25)]


def test_a_loss_of_nan_is_a_step_and_a_notice() -> None:
    step, notice = parse(b"completed step: 20, seconds: 0.427, total_weights: 28764, loss: nan\n")

    assert isinstance(step, Step)
    assert step.loss is not None
    assert math.isnan(step.loss)
    assert notice == Notice(kind="nan", text="the loss of step 20 is NaN")


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize(("word", "kind"), [("NaN", "nan"), ("Inf", "failed")])
def test_aborted_training_gives_a_notice(word: str, kind: str, end: bytes) -> None:
    text = f"Aborting training due to {word} loss."

    assert [(n.kind, n.text) for n in parse(b"I0317 10:00:34.2 12 x.py:9] " + text.encode() + end)
            if isinstance(n, Notice)] == [(kind, text)]  # fmt: skip


# The end of a log that is cut


def test_a_last_line_without_an_end_is_a_step() -> None:
    line = b"completed step: 9, seconds: 5.667, TFLOP/s/device: 134.924, total_weights: 196608, loss: 10.374"

    assert steps(line) == steps(line + b"\n")


def test_a_value_that_may_lack_digits_is_skipped() -> None:
    line = b"completed step: 9, seconds: 15.667, TFLOP/s/device: 134.924, total_weights: 196608, loss: 10.374\n"
    whole = steps(line)[0]

    for length in range(len(line)):
        for step in steps(line[:length]):
            for name, value in attrs.asdict(step, filter=lambda _field, value: isinstance(value, float)).items():
                assert value == getattr(whole, name), (line[:length], name)
            assert step.other_values.items() <= whole.other_values.items()


# Real logs

FIGURES = {
    "01": {"count": 500, "first": 1, "last": 500, "last_time_s": 15.688},
    "03": {"count": 30, "first": 0, "last": 29, "last_time_s": 4.301},
    "05": {"count": 30, "first": 0, "last": 29, "last_time_s": 1.505},
    "07": {"count": 10, "first": 0, "last": 9, "last_time_s": 5.667, "tflops": 134.924, "tokens": 8672.758},
    "09": {"count": 5, "first": 0, "last": 4, "last_time_s": 11.645},
    "11": {"count": 2, "first": 8, "last": 9, "last_time_s": 0.166},  # and one line that was shortened by hand
    "13": {"count": 2, "first": 4, "last": 5, "last_time_s": 1.186},
    "15": {"count": 1, "first": 12, "last": 12, "last_time_s": 15.516, "tflops": 508.371},
    "17": {"count": 1, "first": 45, "last": 45, "last_time_s": 3.437},
    "19": {"count": 1, "first": 49, "last": 49, "last_time_s": 15.570, "tflops": 506.597},
    "21": {"count": 10, "first": 0, "last": 49, "last_time_s": 0.428},
    "23": {"count": 6, "first": 1, "last": 6, "last_time_s": 0.472},
}


@pytest.mark.parametrize("log", REAL, ids=lambda path: path.stem)
def test_a_real_log_has_the_steps_in_its_index(log: Path) -> None:
    with (SHARED / "INDEX.tsv").open() as file:
        rows = {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}
    stated = int(rows[f"maxtext/{log.name}"]["steps"])
    shortened = log.read_bytes().count(b", ...")

    assert len(last_run(log.read_bytes())) == stated - shortened


@pytest.mark.parametrize("log", REAL, ids=lambda path: path.stem)
def test_a_real_log_has_these_values(log: Path) -> None:
    if (expected := FIGURES.get(log.name[:2])) is None:
        pytest.skip("its figures are not written down here")
    found = steps(log.read_bytes())
    seen = {
        "count": len(found),
        "first": found[0].step,
        "last": found[-1].step,
        "last_time_s": found[-1].time_s,
        "tflops": found[-1].tflops_per_gpu,
        "tokens": found[-1].tokens_per_s_per_gpu,
    }

    assert {name: seen[name] for name in expected} == expected
    assert {step.attempt for step in found} == {0}


def test_the_golden_log_of_a_run_of_ours() -> None:
    found = steps(GOLDEN.read_bytes())

    assert [step.step for step in found] == list(range(50))
    assert found[2] == Step(
        step=2,
        time_s=0.243,
        loss=8.085,
        tflops_per_gpu=0.142,
        tokens_per_s_per_gpu=6317.790,
        other_values={"total_weights": 1536.0, "lm_loss": 8.085, "perplexity": 3243.993},
    )


def test_the_log_that_turned_nan() -> None:
    log = SHARED / "maxtext" / "21-gemma-tpu-nan-loss.log"
    if not log.exists():
        pytest.skip("the real logs are not here")
    found = parse(log.read_bytes())

    assert [item.step for item in found if isinstance(item, Step) and math.isnan(item.loss or 0.0)] == [20, 49]
    assert [item.kind for item in found if isinstance(item, Notice)] == ["nan"]


# The same log, by other ways


@pytest.mark.parametrize("log", VARIED_THEN_ALL)
def test_line_ends_do_not_matter(log: Path) -> None:
    data = log.read_bytes()

    assert last_run(data.replace(b"\n", b"\r\n")) == last_run(data)
    assert last_run(data.replace(b"\n", b"\r")) == last_run(data)


@pytest.mark.parametrize("log", VARIED_THEN_ALL)
@pytest.mark.parametrize("label", ["N: ", "  N: ", "[defaultN]:", "node-N: "])
def test_a_label_before_each_line_does_not_matter(log: Path, label: str) -> None:
    data = log.read_bytes()

    assert last_run(interleaved(data, 1, label)) == last_run(data)


@pytest.mark.parametrize("log", VARIED_THEN_ALL)
@pytest.mark.parametrize("label", ["", "N: "], ids=["not labelled", "labelled"])
@pytest.mark.parametrize(("ranks", "late"), [(2, 0), (2, 1), (3, 1), (3, 7)])
def test_ranks_in_one_log_give_the_steps_of_one(log: Path, label: str, ranks: int, late: int) -> None:
    data = log.read_bytes()

    assert last_run(interleaved(data, ranks, label, late)) == last_run(data)


@pytest.mark.parametrize("log", VARIED_THEN_ALL)
def test_ranks_in_logs_of_their_own_give_the_steps_of_one(log: Path) -> None:
    data, parser = log.read_bytes(), MaxTextLog()
    found = [item for rank in range(3) for item in parser.feed(data, f"rank{rank}.log")] + list(parser.close())

    assert {item.attempt for item in found if isinstance(item, Step)} == {0}
    assert len({item.step for item in found if isinstance(item, Step)}) == len(last_run(data))


@pytest.mark.parametrize("label", ["", "N: "], ids=["not labelled", "labelled"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("log", VARIED, ids=lambda path: path.stem)
def test_a_profile_run_before_a_log_does_not_count(log: Path, ranks: int, label: str) -> None:
    data = interleaved(log.read_bytes(), ranks, label, late=1)
    first = steps(data)[0].step
    lines = [b"completed step: %d, seconds: 99.000, loss: 1.000\n" % step for step in range(first, first + 15)]
    profiled = interleaved(b"".join(lines), ranks, label)

    assert last_run(profiled + data) == last_run(data)


def test_a_measured_run_shorter_than_its_profile_run_is_all_that_counts() -> None:
    profiled = b"".join(b"completed step: %d, seconds: 9.000, loss: nan\n" % step for step in range(15))
    measured = b"".join(b"completed step: %d, seconds: 1.000, loss: 1.000\n" % step for step in range(4))

    assert last_run(profiled + measured) == last_run(measured)


def test_a_rewind_to_a_checkpoint_continues_the_run() -> None:
    lines = [b"completed step: %d, seconds: 1.000, loss: 1.000\n" % step for step in [*range(10), *range(5, 12)]]

    assert list(last_run(b"".join(lines))) == list(range(12))


@pytest.mark.parametrize("log", VARIED_THEN_ALL)
@given(places=st.lists(st.integers(min_value=0), max_size=30))
def test_how_the_bytes_are_cut_does_not_matter(log: Path, places: Sequence[int]) -> None:
    data = log.read_bytes()

    assert repr(parse(*cut(data, places))) == parsed_in_one_piece(log)


@given(places=st.lists(st.integers(min_value=0), max_size=60), ranks=st.integers(1, 3), crlf=st.booleans())
def test_how_interleaved_ranks_are_cut_does_not_matter(places: Sequence[int], ranks: int, crlf: bool) -> None:
    data = interleaved(SOME.encode(), ranks, "N: ")
    data = data.replace(b"\n", b"\r\n") if crlf else data

    assert repr(parse(*cut(data, places))) == repr(parse(data))
    assert list(last_run(*cut(data, places))) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("log", VARIED_THEN_ALL)
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_the_size_of_the_blocks_does_not_matter(log: Path, size: int) -> None:
    data = log.read_bytes()[-50_000:]

    assert repr(parse(*cut(data, range(0, len(data), size)))) == repr(parse(data))


def test_a_garbled_log_does_not_stop_the_parser() -> None:
    assert all(read(MaxTextLog, log) for log in garbled(SOME.encode()))


@pytest.mark.parametrize("label", ["", "I0317 10:00:33.8 12 metric_logger.py:181] "])
def test_steps_that_a_copy_wrapped(label: str) -> None:
    lines = (
        f"{label}completed step: %d, seconds: 48.5, TFLOP/s/device: 23.456,",
        "  Tokens/s/device: 169.5, total_weights: 1048576, ",
        "loss: 13.5, perplexity: 2.25",
        "saving a checkpoint: 7",
    )
    found = {
        step.step: step
        for step in parse(*(f"{line % n if '%' in line else line}\n".encode() for n in (0, 1) for line in lines))
        if isinstance(step, Step)
    }

    step = Step(step=0, time_s=48.5, tflops_per_gpu=23.456, tokens_per_s_per_gpu=169.5, loss=13.5)
    figures = {"total_weights": 1048576.0, "perplexity": 2.25}
    assert [*found.values()] == [attrs.evolve(step, step=number, other_values=figures) for number in (0, 1)]


def test_steps_that_a_copy_wrapped_after_a_colon() -> None:
    found = parse(b"completed step: 4, seconds:\n2.012, TFLOP/s/device: 3.125, loss:\n  10.125\nsaved: 1\n")
    assert found[-1] == Step(step=4, time_s=2.012, tflops_per_gpu=3.125, loss=10.125)


LONG = (
    "completed step: 12, seconds: 0.589, TFLOP/s/device: 429.158, Tokens/s/device: 27818.129, total_weights: 131072, "
    "loss: 12.974, lm_loss: 12.974, perplexity: 431229.344, mtp_loss: 0.012"
)


@pytest.mark.parametrize(("label", "labels_parts"), [("", False), ("3: ", True), ("[default3]:", True), ("3: ", False)])
@pytest.mark.parametrize(
    "end", ["", "saving a checkpoint: 7\n", "7 hosts are ready\n", LONG.replace("12,", "13,", 1) + "\n"]
)
def test_a_terminal_of_any_width_may_wrap_a_copy(label: str, labels_parts: bool, end: str) -> None:
    whole = one(f"{label}{LONG}")
    assert whole
    for width in range(len("completed step: "), len(LONG)):
        lines = [LONG[begin : begin + width] for begin in range(0, len(LONG), width)]
        text = ("\n" + label * labels_parts).join(lines)
        found = parse(f"{label}{text}\n{end}".encode())
        last = [step for step in found if isinstance(step, Step) and step.step == 12][-1]
        assert (last, last.rank) == (whole, whole.rank), width


@pytest.mark.parametrize("line", ["7", "7, ranks: 8", "saved: 1", " 3.5"])
def test_a_line_of_numbers_does_not_continue_a_complete_step(line: str) -> None:
    assert parse(f"completed step: 4, seconds: 2.012\n{line}\n".encode()) == [Step(step=4, time_s=2.012)]


def test_a_line_of_another_rank_does_not_continue_a_cut_line() -> None:
    assert parse(b"0: completed step: 4, seconds: 2.012, loss: 13.56\n1: 3\n") == [Step(step=4, time_s=2.012)]


@pytest.mark.parametrize("value", ["1", "13.", "13.5", "13.56"])
def test_a_value_that_srun_cut_is_left_out(value: str) -> None:
    """With --label, srun writes a line end and the next label after 1024 bytes."""
    found = parse(f"0: completed step: 4, seconds: 2.012, loss: {value}\n0: restored\n".encode())
    assert found == [Step(step=4, time_s=2.012)]


def test_a_run_that_was_preempted_is_incomplete(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("completed step: 5, seconds: 0.5, loss: 5.1\nW0317 10:00:34.0 1 x.cc:5] SIGTERM caught at 2026\n")

    parsed = llmb.parse([log], framework="maxtext")

    assert parsed.failure
    assert (parsed.status, parsed.failure.cause) == (
        "incomplete",
        "unknown: the job received SIGTERM and stopped after a checkpoint",
    )


@pytest.mark.parametrize(("code", "cause"), [("1", "unknown: a process exited with code 1"), ("0", None)])
def test_the_exit_code_that_xpk_prints(tmp_path: Path, code: str, cause: str | None) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"completed step: 5, seconds: 0.5, loss: 5.1\nEXIT_CODE={code}\n")

    failure = llmb.parse([log], framework="maxtext").failure

    assert (failure.cause if failure else None) == cause


def test_the_number_of_steps_is_that_of_the_configuration(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    steps = "".join(f"completed step: {number}, seconds: 0.5, loss: 5.1\n" for number in range(4))
    log.write_text("I1121 04:43:37.2 1 pyconfig.py:591] Config param steps: 5\nConfig param stepsize: 3\n" + steps)
    assert llmb.parse([log], framework="maxtext").status == "incomplete"

    log.write_text(log.read_text() + "completed step: 4, seconds: 0.5, loss: 5.1\n")
    assert llmb.parse([log], framework="maxtext").status == "complete"


def test_a_run_that_reaches_its_target_loss_is_complete(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(
        "Config param steps: 90\ncompleted step: 0, seconds: 9.5, loss: 5.125\n"
        "Training stopped: Target loss self.config.target_eval_loss=5.5 is achieved.\n"
        "completed step: 1, seconds: 0.5, loss: 5.1\n"
    )

    parsed = llmb.parse([log], framework="maxtext")

    assert (parsed.status, parsed.series.total_steps) == ("complete", 2)


@pytest.mark.parametrize(
    ("message", "cause"),
    {
        "Job received termination signal (SIGTERM).": (
            "unknown: the job received SIGTERM and stopped after a checkpoint"
        ),
        "You may have run out of training data. Received <class 'StopIteration'> exception: ()": (
            "the dataset has no more data"
        ),
        "`load_next_batch()` failed with <class 'StopIteration'> exception: ().": "the dataset has no more data",
        "`next(self.data_iterator)` failed with <class 'ValueError'> exception: (x).": (
            "the data loader failed (ValueError)"
        ),
        "Checkpointing failed. Barrier timed out": "a checkpoint could not be written or read",
    }.items(),
)
def test_the_reason_why_a_training_stopped(tmp_path: Path, message: str, cause: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"Config param steps: 90\ncompleted step: 0, seconds: 0.5, loss: 5.1\nTraining stopped: {message}\n")

    parsed = llmb.parse([log], framework="maxtext")

    assert parsed.failure
    assert (parsed.status, parsed.failure.cause) == ("incomplete", cause)


def test_a_training_that_aborts_because_of_an_infinite_loss(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("completed step: 0, seconds: 0.5, loss: inf\nAborting training due to Inf loss.\n")

    parsed = llmb.parse([log], framework="maxtext")

    assert parsed.failure
    assert (parsed.status, parsed.failure.cause) == ("incomplete", "the loss became infinite")
