"""The lines that users read while runs proceed."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.live import Live

import llmb
from llmb import Progress
from llmb.cli.views.progress import LiveView, PlainView, View, clock, describe_progress


def running(step: int | None = None, **more: object) -> Progress:
    return Progress(run_id="k3x9f-tiny", name="tiny", state="running", phase="train", step=step, steps=50, **more)  # type: ignore[arg-type]


def test_a_line_has_phase_step_step_time_mfu_and_time_left() -> None:
    line = describe_progress(running(7, step_time_s=0.1337, mfu=0.4127, left_s=65.2))
    assert line == "k3x9f-tiny: train, step 7 of 50, 0.134 s/step, MFU 41.3 %, 1:05 left"


def test_an_impossible_mfu_is_not_printed() -> None:
    line = describe_progress(running(7, step_time_s=0.1337, mfu=1.3))
    assert line == "k3x9f-tiny: train, step 7 of 50, 0.134 s/step, MFU above 100 % (wrong peak)"


def test_before_the_first_step_there_is_only_the_phase() -> None:
    assert describe_progress(running()) == "k3x9f-tiny: train"


def test_a_state_comes_with_its_detail() -> None:
    progress = Progress(run_id="k3x9f-tiny", name="tiny", state="preparing", detail="virtual environment")
    assert describe_progress(progress) == "k3x9f-tiny: preparing, virtual environment"


def test_an_ended_run_shows_no_step() -> None:
    ended = Progress(run_id="k3x9f-tiny", name="tiny", state="failed", phase="train", step=7, steps=50, step_time_s=1.0)
    assert describe_progress(ended) == "k3x9f-tiny: failed"


@pytest.mark.parametrize(("seconds", "shown"), [(0.2, "0:00"), (59.6, "1:00"), (3599, "59:59"), (7384, "2:03:04")])
def test_time_left_reads_as_a_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


def test_a_narrow_terminal_shortens_the_run_id_and_not_its_metrics() -> None:
    progress = Progress(
        run_id="3n4fr-llama3.1-405b-gb200-fp8-512-1", name="x", state="running", phase="train", step=10, steps=50,
        step_time_s=5.74, mfu=0.367, left_s=230,
    )  # fmt: skip
    line = describe_progress(progress, 80)
    assert len(line) == 80
    assert line.startswith("3n4fr-llama3.1-405b")
    assert line.endswith("…: train, step 10 of 50, 5.74 s/step, MFU 36.7 %, 3:50 left")


NOTICES = {
    llmb.Note(text="the [target] was replaced"): "the [target] was replaced",
    llmb.TargetLost(target="eos", reason="eos: connection timed out"): (
        "eos: connection timed out; retrying (jobs there continue)"
    ),
    llmb.TargetBack(target="eos"): "eos responds again",
}


@pytest.mark.parametrize(("event", "line"), NOTICES.items(), ids=lambda each: type(each).__name__)
def test_plain_view_prints_what_the_user_must_know(
    event: llmb.Event, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    PlainView().show(event)
    assert capsys.readouterr() == ("", f"llmb: {line}\n")


def test_plain_view_prints_one_line_for_each_tenth_of_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainView()
    for step in range(50):
        view.show(running(step))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line.partition("step ")[2] for line in printed.err.splitlines()] == [
        f"{step} of 50" for step in range(0, 50, 5)
    ]


def test_plain_view_prints_a_state_once(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainView()
    for step in (None, 1, 2):  # a log may be read before the scheduler reports that the job runs
        view.show(Progress(run_id="k3x9f-tiny", name="tiny", state="queued", step=step, steps=5))
    assert capsys.readouterr().err == "k3x9f-tiny: queued\n"


def test_plain_view_prints_a_skipped_run_with_the_beginning_of_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    PlainView().show(llmb.Skipped(run_id="k3x9f-tiny", reason="the record is damaged\nand more"))
    assert capsys.readouterr() == ("", "k3x9f-tiny: skipped, the record is damaged\n")


@pytest.mark.parametrize("event", [llmb.Submitting(run_id="k3x9f-tiny"), llmb.Ended(state="failed"), llmb.Event()])
def test_views_ignore_events_that_they_do_not_show(event: llmb.Event, capsys: pytest.CaptureFixture[str]) -> None:
    PlainView().show(event)
    terminal = Terminal()
    terminal.view.show(event)
    assert (capsys.readouterr(), terminal.lines) == (("", ""), [])


class Terminal:
    """A live view, and what it shows."""

    def __init__(self, height: int = 24) -> None:
        self.output = io.StringIO()
        console = Console(file=self.output, force_terminal=True, highlight=False, width=80, height=height)
        self._live = Live(console=console, auto_refresh=False)
        self.view: View = LiveView(self._live)

    @property
    def lines(self) -> list[str]:
        return str(self._live.renderable or "").splitlines()


def queued(run_id: str) -> Progress:
    return Progress(run_id=run_id, state="queued")


def test_live_view_keeps_one_line_per_unfinished_run() -> None:
    terminal = Terminal()
    for event in (queued("a"), queued("b"), queued("c"), queued("d"), Progress(run_id="b", state="running")):
        terminal.view.show(event)
    assert terminal.lines == ["a: queued", "b: running", "c: queued", "d: queued"]
    terminal.view.show(Progress(run_id="b", state="completed"))
    terminal.view.show(llmb.Ended(run_id="c", state="failed"))
    terminal.view.show(llmb.Skipped(run_id="d", reason="d: HF_TOKEN is not set\nd: WANDB_KEY is not set"))
    assert terminal.lines == ["a: queued", "d: skipped, HF_TOKEN is not set"]


def test_live_view_fits_the_height_of_the_terminal() -> None:
    terminal = Terminal(height=4)
    for name in "abcdef":
        terminal.view.show(queued(name))
    assert terminal.lines == ["a: queued", "b: queued", "c: queued"]


@pytest.mark.parametrize(("event", "line"), NOTICES.items(), ids=lambda each: type(each).__name__)
def test_live_view_prints_what_the_user_must_know_as_it_is(event: llmb.Event, line: str) -> None:
    terminal = Terminal()
    terminal.view.show(event)
    assert f"llmb: {line}\n" in terminal.output.getvalue()
