"""The logs of a run as `llmb logs -f` prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.cli.views.logs import LogPrinter


def test_a_heading_is_printed_whenever_the_output_switches_to_another_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printer = LogPrinter(tmp_path)
    for name, text in [("0.log", "a\n"), ("1.log", "b\n"), ("0.log", "c\n"), ("0.log", "d"), ("1.log", "e\n")]:
        with (tmp_path / name).open("a") as log:
            log.write(text)
        printer.print_new()
    assert capsys.readouterr().out == "a\n==> 1.log <==\nb\n==> 0.log <==\nc\nd\n==> 1.log <==\ne\n"
