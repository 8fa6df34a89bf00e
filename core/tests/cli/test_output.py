"""Text that reaches a terminal, a pipe or a file."""

from __future__ import annotations

import re
import sys

import pytest

from llmb import Note, Progress
from llmb.cli import output
from llmb.cli.views.live_area import LiveArea
from llmb.cli.views.live_view import LiveView
from llmb.cli.views.metrics import print_named_values

DANGEROUS = "\x1b]0;title\x07disk \x1b[31mfull\x1b[0m\x9b2K\b, see\tlog"
HARMLESS = "disk full, see\tlog"


def test_messages_contain_no_escape_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_message(DANGEROUS)
    assert capsys.readouterr() == ("", f"llmb: {HARMLESS}\n")


@pytest.mark.parametrize(("is_terminal", "printed"), [(True, HARMLESS), (False, DANGEROUS)])
def test_text_is_exact_in_a_pipe_and_harmless_on_a_terminal(
    is_terminal: bool, printed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    output.print_text(DANGEROUS)
    assert capsys.readouterr().out == f"{printed}\n"


def test_live_lines_contain_no_escape_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    view = LiveView(LiveArea(output.console(stderr=True)))
    view.show(Progress(run_id="k3x9f", state="queued", detail=DANGEROUS))
    view.show(Note(text=DANGEROUS))
    view.close()
    written = capsys.readouterr().err
    assert "k3x9f  queued      disk full, see log\n" in written
    assert "\x1b]0;title" not in written
    assert "\x1b[31m" not in written


def test_a_command_is_not_broken_so_that_it_can_be_copied() -> None:
    text = "find the rank that failed first: `grep -rn 'error' /a/folder | head -n 20` prints 20 lines of all ranks"
    assert output.break_prose(text, 40) == [
        "find the rank that failed first:",
        "`grep -rn 'error' /a/folder | head -n 20`",
        "prints 20 lines of all ranks",
    ]


@pytest.mark.parametrize("quantity", ["27.13 s", "5 %", "76 GB"])
def test_a_number_and_its_unit_stay_on_one_line(quantity: str) -> None:
    text = f"lost to start-up and exit {quantity}"
    assert output.break_prose(text, len(text) - 1) == ["lost to start-up and exit", quantity]
    assert output.break_prose("step 3 starts", 7) == ["step 3", "starts"]


def test_named_values_fit_a_terminal_of_40_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    print_named_values([("  steady state", "1.000 s, steps 10 to 19; no spikes, drift +0.0 %")])
    lines = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out).splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) <= 40
