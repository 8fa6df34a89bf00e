"""The commands that ``llmb --verbose`` prints."""

from __future__ import annotations

import logging

import pytest

from llmb.hosts.command_log import log_command

CHECK = "check() {\n" + "  true\n" * 9 + "}"


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        (f"{CHECK}\n\ncheck\necho done", "  check\n  echo done"),
        (f"{CHECK}\nother() {{\n  true\n}} 2>/dev/null\ncheck", "  check"),
        (f"{CHECK}\n{{\n  check\n}} </dev/null\necho done", "  {\n    check\n  } </dev/null\n  echo done"),
        (f"{CHECK}\n{{\n  check\n}}", "  {\n    check\n  }"),
        ("check() {\n  true\n}\ncheck", "  check() {\n    true\n  }\n  check"),
        ("", ""),
    ],
    ids=["function", "two functions", "group", "group at the end", "short", "empty"],
)
def test_the_commands_behind_the_functions_are_shown(caplog: pytest.LogCaptureFixture, script: str, shown: str) -> None:
    with caplog.at_level(logging.DEBUG, "llmb.hosts"):
        log_command("eos", script)
    [message] = caplog.messages
    assert message.partition("\n")[2] == shown
