"""What a person sees while runs go on."""

from __future__ import annotations

import pytest

from llmb.cli.live import PlainLines, clock, describe
from llmb.drive.events import Progress


def running(step: int | None = None, **more: object) -> Progress:
    return Progress(run_id="k3x9f-tiny", name="tiny", state="running", phase="train", step=step, steps=50, **more)  # type: ignore[arg-type]


def test_the_line_tells_phase_step_step_time_mfu_and_time_left() -> None:
    line = describe(running(7, step_time_s=0.1337, mfu=0.4127, left_s=65.2))
    assert line == "k3x9f-tiny: train, step 7 of 50, 0.134 s/step, MFU 41.3 %, 1:05 left"


def test_before_the_first_step_there_is_only_the_phase() -> None:
    assert describe(running()) == "k3x9f-tiny: train"


def test_a_state_comes_with_its_detail() -> None:
    progress = Progress(run_id="k3x9f-tiny", name="tiny", state="preparing", detail="virtual environment")
    assert describe(progress) == "k3x9f-tiny: preparing, virtual environment"


def test_what_has_ended_shows_no_step() -> None:
    ended = Progress(run_id="k3x9f-tiny", name="tiny", state="failed", phase="train", step=7, steps=50, step_time_s=1.0)
    assert describe(ended) == "k3x9f-tiny: failed"


@pytest.mark.parametrize(("seconds", "shown"), [(0.2, "0:00"), (59.6, "1:00"), (3599, "59:59"), (7384, "2:03:04")])
def test_time_left_is_read_as_a_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


def test_plain_lines_are_one_for_each_tenth_of_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    lines = PlainLines()
    for step in range(50):
        lines.progress(running(step))
    told = capsys.readouterr()
    assert told.out == ""
    assert [line.partition("step ")[2] for line in told.err.splitlines()] == [
        f"{step} of 50" for step in range(0, 50, 5)
    ]


def test_plain_lines_tell_a_state_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = PlainLines()
    for _ in range(3):
        lines.progress(Progress(run_id="k3x9f-tiny", name="tiny", state="queued"))
    assert capsys.readouterr().err == "k3x9f-tiny: queued\n"


def test_a_narrow_terminal_shortens_the_runs_name_rather_than_its_figures() -> None:
    progress = Progress(
        run_id="3n4fr-llama3.1-405b-gb200-fp8-512-1", name="x", state="running", phase="train", step=10, steps=50,
        step_time_s=5.74, mfu=0.367, left_s=230,
    )  # fmt: skip
    line = describe(progress, 80)
    assert len(line) == 80
    assert line.startswith("3n4fr-llama3.1-405b")
    assert line.endswith("…: train, step 10 of 50, 5.74 s/step, MFU 36.7 %, 3:50 left")
