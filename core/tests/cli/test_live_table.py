"""The lines that users read while runs proceed."""

from __future__ import annotations

import io
import tracemalloc

import pytest
from rich.console import Console

import llmb
from llmb import Progress
from llmb.cli.views.live_area import LiveArea
from llmb.cli.views.live_table import RunRow, table_of_runs
from llmb.cli.views.live_view import LiveView
from llmb.cli.views.numbers import format_clock
from llmb.cli.views.plain_view import PlainView, describe_progress


def running(step: int | None = None, **more: object) -> Progress:
    return Progress(run_id="k3x9f-tiny", name="tiny", state="running", phase="train", step=step, steps=50, **more)  # type: ignore[arg-type]


def test_a_line_has_phase_step_step_time_mfu_and_time_left() -> None:
    line = describe_progress(running(7, step_time_s=0.1337, mfu=0.4127, left_s=65.2))
    assert line == "k3x9f-tiny: train, step 7 of 50, 0.134 s/step, MFU 41.3 %, 1:05 left"


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
    assert format_clock(seconds) == shown


def table(*rows: RunRow, activity: str = "", width: int = 80, height: int = 23) -> list[str]:
    return [line.plain for line in table_of_runs(rows, activity, width, height)]


LONG = RunRow(
    run_id="3n4fr-llama3.1-405b-gb200-fp8-512-1", state="running", phase="train", step=10, steps=50,
    step_time_s=5.741, mfu=0.367, left_s=230,
)  # fmt: skip


def test_a_narrow_terminal_shortens_the_middle_of_a_run_id_and_not_its_metrics() -> None:
    titles, line = table(LONG, width=76)
    assert titles == "run                               state           step  s/step  MFU %   left"
    assert line.startswith("3n4fr-ll…")
    assert line.split()[1:] == ["train", "10", "of", "50", "5.741", "36.7", "3:50"]


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (60, ["run", "state", "step", "s/step", "MFU", "%", "left"]),
        (59, ["run", "state", "step", "s/step", "left"]),
        (50, ["run", "state", "step", "s/step"]),
        (40, ["run", "state", "step"]),
        (30, ["run", "state"]),
    ],
)
def test_a_narrow_terminal_leaves_out_columns_one_after_another(width: int, titles: list[str]) -> None:
    shown = table(LONG, width=width)
    assert shown[0].split() == titles
    assert max(map(len, shown)) <= width


def test_a_row_keeps_the_metrics_and_the_verdict_of_a_run_that_ended() -> None:
    ended = RunRow(run_id="k3x9f-tiny", state="completed", step=50, steps=50, step_time_s=5.7, mfu=0.37, verdict="pass")
    titles, line, other, summary = table(ended, RunRow(run_id="abcde-tiny", state="failed", detail="out of memory"))
    assert titles.split() == ["run", "state", "step", "s/step", "MFU", "%", "verdict"]
    assert line.split() == ["k3x9f-tiny", "completed", "50", "of", "50", "5.7", "37.0", "pass"]
    assert other.split()[1:] == ["failed", "out", "of", "memory"]
    assert summary == "2 runs: 1 completed (1 pass), 1 failed"


def test_runs_that_train_or_failed_are_shown_before_runs_that_wait() -> None:
    states = ["queued"] * 10 + ["completed", "failed", "running"]
    rows = [RunRow(run_id=f"{number:05}", state=state) for number, state in enumerate(states)]
    *shown, summary = table(*rows, height=5)
    assert [line.split()[1] for line in shown[1:]] == ["completed", "failed", "running"]
    assert summary == "13 runs: 1 completed, 1 running, 1 failed, 10 queued; 3 of them shown"


def test_an_activity_is_the_last_line() -> None:
    assert table(activity="connecting to eos") == ["connecting to eos ..."]


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
def test_the_plain_view_ignores_other_events(event: llmb.Event, capsys: pytest.CaptureFixture[str]) -> None:
    PlainView().show(event)
    assert capsys.readouterr() == ("", "")


class Terminal:
    """A live view on a terminal, and what was written there."""

    def __init__(self, height: int = 24) -> None:
        self.output = io.StringIO()
        console = Console(file=self.output, force_terminal=True, highlight=False, width=80, height=height)
        self.view = LiveView(LiveArea(console))

    def draw(self) -> str:
        """Return what the next drawing writes."""
        self.output.seek(0)
        self.output.truncate()
        self.view.draw_if_changed()
        return self.output.getvalue()


def test_lines_of_a_specification_in_a_notice_can_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    notice = llmb.Note(text='warning: add to the target:\n[target.env]\nNCCL_DEBUG = "INFO"\nUCX_TLS = "rc"')
    lines = ["llmb: warning: add to the target:", "  [target.env]", '  NCCL_DEBUG = "INFO"', '  UCX_TLS = "rc"']
    PlainView().show(notice)
    assert capsys.readouterr().err.splitlines() == lines
    terminal = Terminal()
    terminal.view.show(notice)
    assert "\n".join(lines) in terminal.output.getvalue().replace("\r\n", "\n")


def test_drawing_writes_only_lines_that_changed() -> None:
    terminal = Terminal()
    for name in "abc":
        terminal.view.show(Progress(run_id=f"{name}-tiny", state="queued"))
    assert "a-tiny" in terminal.draw()
    terminal.view.show(Progress(run_id="b-tiny", state="queued"))
    assert terminal.draw() == ""
    terminal.view.show(Progress(run_id="b-tiny", state="submitting"))
    written = terminal.draw()
    assert "b-tiny  submitting" in written
    assert "a-tiny" not in written


def test_following_for_hours_writes_little_and_keeps_nothing() -> None:
    """Ten hours of steps every 0.25 s are 144,000 events. Growth shows in the second fifty as well."""
    terminal = Terminal()
    runs = [f"{number:05}-tiny" for number in range(1000)]
    terminal.view.add_runs(runs)

    def follow(events: int) -> tuple[int, int]:
        """Return the most bytes that an event wrote, and the memory in use."""
        written = []
        for number in range(events):
            step = {"step": 1000 + number, "steps": 9999, "step_time_s": 0.5 + number % 7 / 10, "left_s": 60.0}
            terminal.view.show(Progress(run_id=runs[number % 5], state="running", phase="train", **step))  # type: ignore[arg-type]
            written.append(len(terminal.draw()))
        return max(written[10:]), tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        _, before = follow(50)
        most, after = follow(50)
    finally:
        tracemalloc.stop()
    assert most < 2 * 80 + 100  # a changed row, and the moves of the cursor
    assert after - before < 20_000


@pytest.mark.parametrize(("event", "line"), NOTICES.items(), ids=lambda each: type(each).__name__)
def test_live_view_prints_what_the_user_must_know_as_it_is(event: llmb.Event, line: str) -> None:
    terminal = Terminal()
    terminal.view.show(event)
    assert f"llmb: {line}\n" in terminal.output.getvalue()


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("", "container image nvcr.io/nvidia/nemo:25.02.rc5"),
        (": layer 3 of 10", "container image nvcr.io/nvid…: layer 3 of 10"),
        (": 58f3a1c2b0de: Pulling fs layer", "container image nvcr.…: 58f3a1c2b0de: Pulling fs layer"),
    ],
)
def test_the_last_output_of_a_task_is_visible_beside_a_long_name(output: str, shown: str) -> None:
    detail = f"container image nvcr.io/nvidia/nemo:25.02.rc5{output}"
    [_, line] = table(RunRow(run_id="aswew-tiny-h100-bf16-1", state="preparing", detail=detail))
    assert line == f"aswew-tiny-h100-bf16-1  preparing   {shown}"
