"""Step lines of NeMo 2 that a terminal wrapped at its width."""

from __future__ import annotations

import pytest
from parts.garbled import garbled, read

from llmb import Step, StepSeries
from llmb_nemo_launcher.log import NeMoLog

LONG = (
    "Training epoch 0, iteration 28/99 | lr: 5.6e-06 | global_batch_size: 32 | global_step: 28 | "
    "reduced_train_loss: 2.778 | train_step_timing in s: 0.1893 | TFLOPS_per_GPU: 1.249e+03 | consumed_samples: 928 | "
    "val_loss: 2.861"
)
SHORT = LONG.partition(" | TFLOPS")[0]
NEXT = LONG.replace("28", "29")


def steps(log: str) -> list[Step]:
    parser = NeMoLog()
    return [item for item in (*parser.feed(log.encode()), *parser.close()) if isinstance(item, Step)]


def series_of(log: bytes) -> list[Step]:
    """Return the steps of a log, after checking that small blocks give the same."""
    series = StepSeries()
    series.add(read(NeMoLog, log))
    return list(series.steps)


def wrapped(line: str, width: int, *, blanks: bool = True, label: str = "") -> str:
    lines = [line[begin : begin + width] for begin in range(0, len(line), width)]
    return "".join(f"{label}{part if blanks else part.strip()}\n" for part in lines)


@pytest.mark.parametrize("line", [LONG, SHORT, f"0: {LONG}"], ids=["long", "short", "label"])
@pytest.mark.parametrize("blanks", [True, False])
@pytest.mark.parametrize("end", ["", "saving a checkpoint: 7\n", "7 hosts are ready\n", NEXT + "\n"])
def test_a_terminal_of_any_width_may_wrap_a_copy(line: str, blanks: bool, end: str) -> None:
    [whole] = steps(line + "\n")
    for width in range(40, 161):
        found = steps(wrapped(line, width, blanks=blanks) + end)
        assert {step.step for step in found} <= {28, 29}, width
        assert [step for step in found if step.step == 28][-1] == whole, width


@pytest.mark.parametrize("label", ["3: ", "[default3]:"])
def test_each_part_of_a_wrapped_line_may_have_a_label(label: str) -> None:
    [whole] = steps(f"{label}{LONG}\n")
    for width in range(40, 161):
        assert steps(wrapped(LONG, width, label=label) + f"{label}done: 5\n")[-1] == whole, width


@pytest.mark.parametrize("line", ["7", "7, ranks: 8", "saved: 1", " 3.5", "1: 5"])
def test_a_line_of_numbers_does_not_continue_a_complete_step(line: str) -> None:
    [whole] = steps(f"0: {LONG}\n")

    assert steps(f"0: {LONG}\n{line}\n") == [whole]


@pytest.mark.parametrize("line", ["...", "7 hosts are ready", "saved: 1"])
def test_another_line_does_not_continue_a_step_that_may_lack_digits(line: str) -> None:
    log = LONG.partition(" | val_loss")[0] + "\n"

    assert steps(f"{log}{line}\n") == steps(log)


def test_the_last_part_of_a_wrapped_line_may_lack_digits() -> None:
    log = wrapped(SHORT, 100)
    for length in range(len(log) - 8, len(log) - 2):  # the last digits of 0.1893
        assert {step.time_s for step in steps(log[:length])} <= {None, 0.1893}


@pytest.mark.parametrize("width", [40, 77, 100, 160])
def test_how_a_wrapped_log_is_cut_does_not_matter(width: int) -> None:
    log = "".join(wrapped(LONG.replace("28", str(n)), width) + "saved: 1\n" * (n % 3) for n in range(60)).encode()

    assert series_of(log) == series_of(log.replace(b"\n", b"\r\n"))
    assert [step.step for step in series_of(log)] == list(range(60))
    assert {step.time_s for step in series_of(log)} == {0.1893}
    assert all(read(NeMoLog, each) for each in garbled(log, 10))
