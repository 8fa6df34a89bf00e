"""Text that reaches a terminal, a pipe or a file."""

from __future__ import annotations

import sys

import pytest
from rich.live import Live

from llmb import Note, Progress
from llmb.cli import output
from llmb.cli.views.progress import LiveView

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
    live = Live(console=output.console(stderr=True), auto_refresh=False)
    view = LiveView(live)
    view.show(Progress(run_id="k3x9f", state="queued", detail=DANGEROUS))
    view.show(Note(text=DANGEROUS))
    assert str(live.renderable) == f"k3x9f: queued, {HARMLESS}"
    assert "\x1b]0;title" not in capsys.readouterr().err
